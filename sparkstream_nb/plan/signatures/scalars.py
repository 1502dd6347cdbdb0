"""Scalar functions: the built-in ones, and the extensions str, time, math, regex, map, list, json, unitconversion, geo
and coordination.

Parameter names and types as the extensions' own metadata has them (siddhi-core 5.1, execution-string 5.0,
-time 5.0, -math 5.0, -regex 5.0, -map 5.0, -list 1.0, -json 2.0, -unitconversion 2.0, gpl-execution-geo 5.0, and
carbon-analytics 3.0), result types as the engine infers them.
"""

from __future__ import annotations

from collections.abc import Mapping

from . import rules
from .signature import Signature, signatures

_BUILT_IN = """
UUID() -> string
cast(to.be.caster any, cast.to string) -> ?
coalesce(arg any, ...) -> ?
convert(to.be.converted any, converted.to string) -> ?
createSet(input prim) -> object
currentTimeMillis() -> long
default(attribute any, default any) -> ?
eventTimestamp() -> long
eventTimestamp(event object) -> long
ifThenElse(condition bool, if.expression any, else.expression any) -> ?
instanceOfBoolean(arg any) -> bool
instanceOfDouble(arg any) -> bool
instanceOfFloat(arg any) -> bool
instanceOfInteger(arg any) -> bool
instanceOfLong(arg any) -> bool
instanceOfString(arg any) -> bool
maximum(arg num, ...) -> ?
minimum(arg num, ...) -> ?
sizeOfSet(set object) -> int
"""

_STR = """
str:charAt(input.value string, index int) -> string
str:charFrequency(input.string string, character string) -> int
str:coalesce(arg any, ...) -> ?
str:concat(arg string, arg string, ...) -> string
str:contains(input.string string, search.string string) -> bool
str:equalsIgnoreCase(arg1 string, arg2 string) -> bool
str:fillTemplate(template string, map object) -> string
str:fillTemplate(template string, replacement prim, ...) -> string
str:hex(input.string string) -> string
str:length(input.string string) -> int
str:locate(input.string string, regex string) -> int
str:locate(input.string string, regex string, start.index int) -> int
str:lower(input.string string) -> string
str:regexp(input.string string, regex string) -> bool
str:repeat(input.string string, times int) -> string
str:replaceAll(input.string string, regex string, replacement.string string) -> string
str:replaceFirst(input.string string, regex string, replacement.string string) -> string
str:reverse(input.string string) -> string
str:split(input.string string, split.string string, group.number int) -> string
str:strcmp(arg1 string, arg2 string) -> int
str:substr(input.string string, begin.index int) -> string
str:substr(input.string string, begin.index int, length int) -> string
str:substr(input.string string, regex string) -> string
str:substr(input.string string, regex string, group.number int) -> string
str:trim(input.string string) -> string
str:unhex(input.string string) -> string
str:upper(input.string string) -> string
"""

_TIME = """
time:currentDate() -> string
time:currentTime() -> string
time:currentTimestamp() -> string
time:currentTimestamp(timezone string!) -> string
time:date(date.value string) -> string
time:date(date.value string, date.format string) -> string
time:dateAdd(date.value string, expr int, unit string!) -> string
time:dateAdd(timestamp.in.milliseconds long, expr int, unit string!) -> string
time:dateAdd(date.value string, expr int, unit string!, date.format string) -> string
time:dateDiff(date.value1 string, date.value2 string) -> long
time:dateDiff(timestamp.in.milliseconds1 long, timestamp.in.milliseconds2 long) -> long
time:dateDiff(date.value1 string, date.value2 string, date.format1 string, date.format2 string) -> long
time:dateFormat(date.value string, date.target.format string) -> string
time:dateFormat(date.value string, date.target.format string, date.source.format string) -> string
time:dateFormat(timestamp.in.milliseconds long, date.target.format string) -> string
time:dateSub(date.value string, expr int, unit string!) -> string
time:dateSub(date.value string, expr int, unit string!, date.format string) -> string
time:dateSub(timestamp.in.milliseconds long, expr int, unit string!) -> string
time:dayOfWeek(date.value string) -> string
time:dayOfWeek(date.value string, date.format string) -> string
time:extract(unit string!, date.value string) -> int
time:extract(unit string!, date.value string, date.format string) -> int
time:extract(unit string!, date.value string, date.format string, locale string!) -> int
time:extract(timestamp.in.milliseconds long, unit string!) -> int
time:extract(timestamp.in.milliseconds long, unit string!, locale string!) -> int
time:timestampInMilliseconds() -> long
time:timestampInMilliseconds(date.value string) -> long
time:timestampInMilliseconds(date.value string, date.format string) -> long
time:timezoneConvert(date.value string, source.format string, target.timezone string) -> string
time:timezoneConvert(date.value string, source.format string, target.timezone string, source.timezone string) -> string
time:utcTimestamp() -> string
"""

_MATH = """
math:abs(p1 num) -> double
math:acos(p1 float|double) -> double
math:asin(p1 float|double) -> double
math:atan(p1 num) -> double
math:atan(p1 num, p2 num) -> double
math:bin(p1 int|long) -> string
math:cbrt(p1 num) -> double
math:ceil(p1 float|double) -> double
math:conv(a string, from.base int, to.base int) -> string
math:copySign(magnitude num, sign num) -> double
math:cos(p1 num) -> double
math:cosh(p1 num) -> double
math:e() -> double
math:exp(p1 num) -> double
math:floor(p1 num) -> double
math:getExponent(p1 num) -> int
math:hex(p1 num) -> string
math:isInfinite(p1 float|double) -> bool
math:isNan(p1 float|double) -> bool
math:ln(p1 num) -> double
math:log(number num, base num) -> double
math:log10(p1 num) -> double
math:log2(p1 num) -> double
math:max(p1 num, p2 num) -> double
math:min(p1 num, p2 num) -> double
math:oct(p1 int|long) -> string
math:parseDouble(p1 string) -> double
math:parseFloat(p1 string) -> float
math:parseInt(p1 string) -> int
math:parseLong(p1 string) -> long
math:pi() -> double
math:power(value num, to.power num) -> double
math:rand() -> double
math:rand(seed int|long!) -> double
math:round(p1 float) -> int
math:round(p1 double) -> long
math:signum(p1 num) -> int
math:sin(p1 num) -> double
math:sinh(p1 num) -> double
math:sqrt(p1 num) -> double
math:tan(p1 num) -> double
math:tanh(p1 num) -> double
math:toDegrees(p1 num) -> double
math:toRadians(p1 num) -> double
"""

_REGEX = """
regex:find(regex string, input.sequence string) -> bool
regex:find(regex string, input.sequence string, starting.index int) -> bool
regex:group(regex string, input.sequence string, group.id int) -> string
regex:lookingAt(regex string, input.sequence string) -> bool
regex:matches(regex string, input.sequence string) -> bool
"""

_MAP = """
map:clear(map object) -> object
map:clone(map object) -> object
map:combineByKey(map object, map object, ...) -> object
map:containsKey(map object, key any) -> bool
map:containsValue(map object, value any) -> bool
map:create() -> object
map:create(key1 any, value1 any, ...) -> object
map:createFromJSON(json.string string) -> object
map:createFromXML(xml.string string) -> object
map:get(map object, key any) -> object
map:get(map object, key any, default.value any) -> object
map:isEmpty(map object) -> bool
map:isMap(arg any) -> bool
map:keys(map object) -> object
map:put(map object, key any, value any) -> object
map:putAll(to.map object, from.map object) -> object
map:putIfAbsent(map object, key any, value any) -> object
map:remove(map object, key any) -> object
map:replace(map object, key any, value any) -> object
map:replaceAll(to.map object, from.map object) -> object
map:size(map object) -> int
map:toJSON(map object) -> string
map:toXML(map object) -> string
map:toXML(map object, root.element.name string!) -> string
map:values(map object) -> object
"""

_LIST = """
list:add(list object, value any) -> object
list:add(list object, value any, index int) -> object
list:addAll(to.list object, from.list object) -> object
list:addAll(to.list object, from.list object, is.distinct bool) -> object
list:clear(list object) -> object
list:clone(list object) -> object
list:contains(list object, value any) -> bool
list:containsAll(list object, given.list object) -> bool
list:containsAny(list object, given.list object) -> bool
list:create() -> object
list:create(value1 any, ...) -> object
list:get(list object, index int) -> object
list:indexOf(list object, value any) -> int
list:isEmpty(list object) -> bool
list:isList(arg any) -> bool
list:lastIndexOf(list object, value any) -> int
list:remove(list object, value any) -> object
list:removeAll(list object, given.list object) -> object
list:removeByIndex(list object, index int) -> object
list:retainAll(list object, given.list object) -> object
list:setValue(list object, index int, value any) -> object
list:size(list object) -> int
list:sort(list object) -> object
list:sort(list object, order string!) -> object
"""

_JSON = """
json:getBool(json string|object, path string) -> bool
json:getDouble(json string|object, path string) -> double
json:getFloat(json string|object, path string) -> float
json:getInt(json string|object, path string) -> int
json:getLong(json string|object, path string) -> long
json:getObject(json string|object, path string) -> object
json:getString(json string|object, path string) -> string
json:isExists(json string|object, path string) -> bool
json:setElement(json string|object, path string, json.element any) -> object
json:setElement(json string|object, path string, json.element any, key string) -> object
json:toObject(json string) -> object
json:toString(json any) -> string
json:toString(json any, allow.escape bool) -> string
"""

_CONVERSIONS = """
MmTokm cmToft cmToin cmTokm cmTom cmTomi cmTomm cmTonm cmToum cmToyd dToh gTokg gTomg gToug hTom hTos kgToLT kgToST
kgTog kgTolb kgTooz kgTost kgTot kmTocm kmToft kmToin kmTom kmTomi kmTomm kmTonm kmToum kmToyd lTom3 lToml m3Tol mTocm
mToft mTomm mTos mToyd miTokm mlTol sToms sTons sTous tTog tTokg yTod
"""
UNIT_CONVERSIONS = tuple(_CONVERSIONS.split())
"""Functions of siddhi-execution-unitconversion: the symbols of two units, with `To` between them."""
_UNITS = "\n".join(
    f"unitconversion:{name}(p1 {'int|double' if name in ('tTog', 'tTokg') else 'num'}) -> double"
    for name in UNIT_CONVERSIONS
)

_OTHERS = """
coordination:isLeader() -> bool
geo:distance(location1.latitude double, location1.longitude double, location2.latitude double, location2.longitude double) -> double
"""  # noqa: E501

TABLE: Mapping[str, Signature] = signatures(
    "\n".join((_BUILT_IN, _STR, _TIME, _MATH, _REGEX, _MAP, _LIST, _JSON, _UNITS, _OTHERS)),
    rules=rules.RESULTS,
    checks=rules.CHECKS,
)
