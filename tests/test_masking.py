"""Secrets do not show: in errors, whatever of them is looked at, in logs, in what plans look like."""

from __future__ import annotations

import string
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from profiles import examples
from sparkstream_nb.app.config.conf_yaml import load_yaml
from sparkstream_nb.app.config.grants import server_of
from sparkstream_nb.errors import Misuse, SiddhiBindError, SiddhiError, SparkStreamError, SparkUnavailable
from sparkstream_nb.lang.parser import parse
from sparkstream_nb.masking import mask_passwords
from sparkstream_nb.outputs.commit import Progress
from sparkstream_nb.plan import compile_app
from sparkstream_nb.plan.connectors.incoming import incoming_sources
from sparkstream_nb.plan.connectors.outside import outside_sinks
from sparkstream_nb.plan.reports.app_graph import graph_of
from sparkstream_nb.plan.reports.explain import explain

KINDS = [SparkStreamError, Misuse, SparkUnavailable, SiddhiError, SiddhiBindError]
PASSWORD = st.text(
    sorted({*string.ascii_letters, *string.digits, *"!#$%()*+,-./:;<=>?@[]^_`{|}~\\&"}), min_size=4, max_size=30
)
NAME = st.text(sorted({*string.ascii_letters, *string.digits, *".-_"}), min_size=1, max_size=20)
ADDRESSES = [
    # What separates the options of an address cannot be in one of them.
    ("//{user}:{password}@host/db", ""),
    ("jdbc:postgresql://{user}:{password}@host:5432/db?ssl=true", ""),
    ("'mysql+pymysql://{user}:{password}@host/db'", ""),
    ("sc://host:15002/;user_id={user};token={password};x=1", ";"),
    ("sc://host;token={password}", ";"),
    ("jdbc:mysql://host/db?user={user}&password={password}&ssl=1", "&"),
    ("password = {password}", ";&"),
    ("@store(password='{password}')", ""),
    ('{{"password": "{password}"}}', "\\"),
    ("@sink(userpass='{password}', topic='t')", ""),
    ("nats://{password}@host:4222", "@:"),
    ("https://{password}@host/path", "@:/?#"),
    ("nats://{user}@one:4222,nats://{password}@two:4222", "@:"),
    ("amqp://{user}:{password}@host:5672/%2f", ""),
    ("https://host/box?sv=2024&sig={password}&se=1", "&"),
    ("https://host/?X-Amz-Signature={password}&a=b", "&"),
    ("https://host/?%74oken={password}", "&"),
    ("jdbc:oracle:thin:{user}/{password}@host:1521:db", ""),
    ("jdbc:oracle:thin:{user}/{password}@//host:1521/db", ""),
    ("jdbc:sqlserver://host:1433;user={user};password={password};x=1", ";"),
    ("jdbc:sqlserver://host:1433;password={{;{password}}};x=1", "}"),
    ("SharedAccessKeyName={user};SharedAccessKey={password};EntityPath=x", ";"),
    ("Server=h;User Id={user}; Pwd={password};", ";"),
    ("sent Authorization: Basic {password} to host", ";,$"),
    ("sent Authorization: {password} to host", ";,$"),
    ("sent authorization:bearer {password} to host", ";,$"),
    ("x-api-key: {password}", ";,$"),
    ("Cookie: a=b; session={password}", ""),
    ("{{'Authorization': 'Basic {password}'}}", "\\"),
    ("[('X-Auth-Token', '{password}')]", ""),
    ("x:\n    password: {password}\n    user: u", "$[{|>&*#"),
    ("<ns:password>{password}</ns:password>", "<>"),
    ('sasl.jaas.config="""login\n  username=u password={password};"""', "&;"),
    ('password="""{user}\n{password}"""', ""),
    ("export DB_PASSWORD={password}", "&;"),
]


def looks(error: SparkStreamError) -> list[str]:
    """All that a person may look at."""
    return [str(error), repr(error), repr(error.args), repr(vars(error)), repr(error._render_traceback_())]


@given(kind=st.sampled_from(KINDS), address=st.sampled_from(ADDRESSES), user=NAME, password=PASSWORD)
@settings(max_examples=examples(300))
def test_an_error_looks_as_if_the_password_were_stars(
    kind: type[SparkStreamError], address: tuple[str, str], user: str, password: str
) -> None:
    text, ends = address
    assume(not set(password) & set(ends) and "${" not in password and "{{" not in password)
    seen, masked = (
        looks(kind(f"No server at {text.format(user=user, password=p)}: it ended"))
        for p in (password, "*" * len(password))
    )
    assert seen == masked


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("postgresql://me:p@ss@host/db", "postgresql://me:****@host/db"),
        ("postgresql://me:a/b@host/db", "postgresql://me:***@host/db"),
        ("sc://h:15002/;token=abc*def;x=1", "sc://h:15002/;token=*******;x=1"),
        ("sc://h/;token=a&b;x=1", "sc://h/;token=***;x=1"),
        ("//h/d?password=a;b&ssl=1", "//h/d?password=***&ssl=1"),
        ("'//me:it's@h', so", "'//me:****@h', so"),
        ("@sink(url='http://me:pw@h/x',@map(type='json'))", "@sink(url='http://me:**@h/x',@map(type='json'))"),
        ('password="""a"b"""', 'password="""***"""'),
        ("password='${sec:NAME}'", "password='${sec:NAME}'"),
        ("api.key='abc'", "api.key='***'"),
        ("T.token == 5", "T.token == 5"),
        ("abfs://box@account/x and http://h:80/x, me@h", "abfs://box@account/x and http://h:80/x, me@h"),
        ("postgresql://me@h/db and https://h/@me", "postgresql://me@h/db and https://h/@me"),
        ("jdbc:oracle:thin:@//h:1521/db", "jdbc:oracle:thin:@//h:1521/db"),
        ("http://h/x?city=Rome&key=abc#top", "http://h/x?city=Rome&key=*******"),
        ("basic authentication; Bearer TOKEN", "basic authentication; Bearer TOKEN"),
        ("Authorization: Basic {{000, x", "Authorization: ***********, x"),
        ("Authorization: Bearer ${sec:HUB}, y", "Authorization: Bearer ${sec:HUB}, y"),
        ("x-api-key: {{KEY}}", "x-api-key: {{KEY}}"),
        ("sent Bearer eyJhbGciOi.J9", "sent Bearer *************"),
        ("send Authorization: Bearer TOKEN", "send Authorization: Bearer TOKEN"),
        ("bypass='true', compass='n', passive='x'", "bypass='true', compass='n', passive='x'"),
        ("partition.key='k', key='v', routing.key='r'", "partition.key='k', key='v', routing.key='r'"),
        ('{"password": 12345, "port": 5}', '{"password": *****, "port": 5}'),
        ("password: ${env:DB}", "password: ${env:DB}"),
        ("https://hooks.slack.com/services/T00/B00/XyZ", "https://hooks.slack.com/services/***********"),
        ("discord.com/api/webhooks/12/ab-c", "discord.com/api/webhooks/12/****"),
        ("https://api.telegram.org/bot12:abc/send", "https://api.telegram.org/bot******/send"),
        ("got eyJhbGciOi.eyJzdWIi.c2ln, so", "got ************************, so"),
        ("no ghp_0123456789ab nor ghp_ab", "no **************** nor ghp_ab"),
        ("@source(login='u:s3', url='http://h')", "@source(login='u:**', url='http://h')"),
        ("auth='basic', login='u', pin='12', spin='3'", "auth='basic', login='u', pin='**', spin='3'"),
        ("app.Taken: '_node', taken='x', tokens='x'", "app.Taken: '_node', taken='x', tokens='*'"),
        ("the password: it does not belong here", "the password: it does not belong here"),
    ],
)
def test_what_of_a_text_is_masked(text: str, shown: str) -> None:
    assert mask_passwords(text) == mask_passwords(mask_passwords(text)) == shown


def test_a_text_without_end_is_masked_in_time() -> None:
    for text in ("x-key" * 100_000, "oracle:a:" * 50_000, "?a=" * 100_000, 'p="""' * 50_000, "<a>" * 100_000):
        mask_passwords(text)
    for text in ("//a:" * 100_000, "token" * 100_000, "//:@" * 100_000, "a" * 400_000, "password=" * 50_000):
        mask_passwords(text)
    for text in ("password '" * 50_000, "-- " * 100_000, "-- a:" * 50_000, "u:" * 100_000 + "@h", "*' + " * 50_000):
        mask_passwords(text)
    for text in ("pass " * 100_000, "(token " * 50_000, "# token:" * 50_000, "u:a@" * 50_000, "\\/" * 100_000 + "@h"):
        mask_passwords(text)


def test_the_text_and_the_hint_of_an_error() -> None:
    source = "@store(type='rdbms', password='s3cret')\ndefine table T (v int);"
    hint = "Write jdbc:postgresql://me:s3cret@host/db"
    for error in (
        SiddhiError("wrong", hint=hint, source=source),
        SiddhiBindError("wrong", hint=hint).with_source(source),
    ):
        assert not any("s3cret" in look for look in looks(error))
        assert "@store(type='rdbms', password='******')" in str(error)


def test_a_word_that_is_cut_is_masked_before() -> None:
    assert "s3cret" not in str(SparkStreamError(f"//me:s3cret{'x' * 500}@host"))


APP = '''
@store(type='rdbms', jdbc.url='jdbc:postgresql://me:s3cret@h/db', username='me', password='s3cret')
define table T (k string, v int);
@source(type='cdc', mode='polling', url='jdbc:mysql://h/db', username='me', password='s3cret', table.name='t',
    polling.column='v', jdbc.driver.name='d', @map(type='keyvalue'))
define stream S (k string, v int);
@sink(type='http', publisher.url='http://h/x', basic.auth.username='me', basic.auth.password='s3cret',
    @map(type='json'))
@sink(type='kafka', topic='t', bootstrap.servers='h:9092',
    optional.configuration="""sasl.jaas.config:login username='me' password='s3cret'""", @map(type='json'))
define stream O (k string, v int);
@info(name='q') from S select k, v insert into O;
from S select k, v update or insert into T set T.v = v on T.k == k;
'''


def test_plans_and_trees_do_not_show_passwords_and_have_them() -> None:
    plan = compile_app(APP)
    seen = [
        plan,
        parse(APP),
        graph_of(plan),
        *plan.streams.values(),
        *plan.tables.values(),
        *incoming_sources(plan),
        *outside_sinks(plan),
    ]
    assert not [x for x in seen if "s3cret" in repr(x) or "s3cret" in str(x)]
    store = plan.tables["T"].annotations[0]
    assert (store.get("password"), store.get("username")) == ("s3cret", "me")
    assert "key='username', value='me'" in repr(store)
    assert plan.text == APP
    assert "value='${sec:DB}'" in repr(parse("@store(password='${sec:DB}') define table T (v int);"))


def test_addresses_in_queries_are_masked_in_plans_and_graphs() -> None:
    """And comparisons are shown as they are."""
    plan = compile_app("""define stream S (k string);
        @info(name='q', note='http://me:s3cret@h/x')
        from S[k != 'http://me:s3cret@h/' and k != 'token'] select k, 'nats://s3cret@h' as url insert into O;""")
    for text in (explain(plan), *(node.text for node in graph_of(plan).nodes)):
        assert "s3cret" not in text
    assert "k != 'http://me:******@h/' and k != 'token'" in explain(plan)


def test_the_log_of_an_app_does_not_show_passwords() -> None:
    progress = Progress()
    progress.say("Lost postgresql://me:s3cret@h/db")
    progress.say("Lost postgresql://me:s3cret@h/db")
    assert progress.logs == ["Lost postgresql://me:******@h/db"]


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("pasword='s3cret'", "pasword='******'"),
        ("basic.auth.pasword = \"s3 cret\", topic='t'", "basic.auth.pasword = \"*******\", topic='t'"),
        ("secert='s3cret'", "secert='******'"),
        ("pw='s3cret'", "pw='******'"),
        ("password='s3cret\nuser='me'", "password='******\nuser='me'"),
        ("password='${sec:db}\n", "password='${sec:db}\n"),
        ("topic='t', basic.auth.enabled='false'", "topic='t', basic.auth.enabled='false'"),
        ("from S[k == 'pass'] select k", "from S[k == 'pass'] select k"),
        ("@store(type='rdbms', password: 's3cret')", "@store(type='rdbms', password: '******')"),
        ("@store(type='rdbms', password 's3cret')", "@store(type='rdbms', password '******')"),
        ("@store(type='rdbms', pasword s3cret)", "@store(type='rdbms', pasword ******)"),
        ("(the token is here), (token of yours)", "(the token is here), (token of yours)"),
        ("@store(type='rdbms', `password`='s3cret')", "@store(type='rdbms', `password`='******')"),
        ("@store(type='rdbms', pass word='s3cret')", "@store(type='rdbms', pass word='******')"),
        ("@store(password='a\\'s3cret', x='y')", "@store(password='*********', x='y')"),
        ("@store(password='a' + 's3cret')", "@store(password='*' + '******')"),
        ("password = u's3cret'", "password = *'******'"),
        ("headers=\"'Authorisation:s3cret'\"", "headers=\"'Authorisation:******'\""),
        ("headers=\"'X-Auth: s3cret'\"", "headers=\"'X-Auth: ******'\""),
        ('  - password: "s3cret"', '  - password: "******"'),
        ("password: 's3cret", "password: '******"),
        ("/* token: s3cret */ foo='x'", "/* token: ****** */ foo='x'"),
        ("-- the token: here is none", "-- the token: here is none"),
        ("url='u:s3cret@h:9092'", "url='u:******@h:9092'"),
        ("url='http:/u:s3cret@h/x'", "url='http:/u:******@h/x'"),
        (r'{"url": "http:\/\/u:s3cret@h\/x"}', r'{"url": "http:\/\/u:******@h\/x"}'),
        ("to='mailto:ann@b.org', at 10:30@cafe", "to='mailto:ann@b.org', at 10:30@cafe"),
        ("-----BEGIN PRIVATE KEY-----s3cret", "-----BEGIN PRIVATE KEY-----******"),
    ],
)
def test_secrets_whose_option_is_misspelt_or_whose_quote_is_open(text: str, masked: str) -> None:
    assert mask_passwords(text) == masked


@pytest.mark.parametrize(
    "text",
    [
        'optional.configuration=\'sasl.jaas.config:x.Y required username="u" password="{}";\'',
        'optional.configuration="""sasl.jaas.config:x password="{}";"""',
        "optional.configuration='ssl.key.password:{},security.protocol:SSL'",
        "pool.properties='user:u, password : {}'",
        "headers=\"'Authorization: Bearer {}','A:b'\"",
        "headers=\"'X-Api-Key:{}'\"",
        "url='https://host/?access_key={}&x=1'",
        "private.key='{}'",
        "connection='AccountKey={}'",
    ],
)
def test_secrets_inside_the_value_of_an_option(text: str) -> None:
    assert mask_passwords(text.format("hunter2zz")) == text.format("*" * 9) or "Bearer" in text
    assert "hunter2zz" not in mask_passwords(text.format("hunter2zz"))


@pytest.mark.parametrize(
    "text",
    [
        "optional.configuration='ssl.key.password:${sec:KEY},a:b'",
        "headers=\"'X-Token:{{token}}'\"",
        "file.uri='file:///data/tokens.csv'",
        "key.deserializer='org.apache.kafka:StringDeserializer,group.id:g'",
    ],
)
def test_values_of_options_without_secrets_are_shown(text: str) -> None:
    assert mask_passwords(text) == text


@pytest.mark.parametrize("text", ["u:s3cret@h:1", "s3cret@h:1", "tcp://s3cret@h:1", "h:1?token=s3cret"])
def test_a_secret_in_the_place_of_a_server(text: str) -> None:
    with pytest.raises(Misuse) as caught:
        server_of(text, "allow: tcp")
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize("value", ["*s3cret", "!s3cret", "[s3cret", "'s3cret", "&s3cret 1", "@s3cret", '"\\s3cret"'])
def test_a_secret_that_is_no_yaml(tmp_path: Path, value: str) -> None:
    file = tmp_path / "deployment.yaml"
    file.write_text(f"a:\n  password: {value}\n  b: &s3cret 1\n  c: &s3cret 2\n")
    with pytest.raises(Misuse) as caught:
        load_yaml(file)
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize(
    "option",
    [
        "password: 's3cret'", "password 's3cret'", "password=s3cret", "pasword s3cret", "password='a\\'s3cret'",
        "password='s3cret", 'password="""s3cret', "password='x' + 's3cret'", "basic.auth.pass \"s3cret\"",
    ],
)  # fmt: skip
def test_a_syntax_error_at_a_secret_does_not_show_it(option: str) -> None:
    """Neither the text with the caret nor what was read there."""
    with pytest.raises(SiddhiError) as caught:
        parse(f"@store(type='rdbms', {option})\ndefine table T (v int);")
    assert "s3cret" not in str(caught.value)
    assert not any("s3cret" in look for look in looks(caught.value))
