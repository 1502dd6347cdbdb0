"""Messages of the outside world to events and back, as pure functions: no Spark, no files, no network.

`decoder(mapping, schema)` reads the messages of a source, `encoder(mapping, schema)` writes messages of a sink;
`plan.connectors.mappings` makes the mappings of an app's annotations.
"""

from .decoding import Decoded as Decoded
from .decoding import Decoder as Decoder
from .decoding import RejectedMessage as RejectedMessage
from .decoding import decoder as decoder
from .encoding import DroppedMessage as DroppedMessage
from .encoding import Encoder as Encoder
from .encoding import EventPositions as EventPositions
from .encoding import Message as Message
from .encoding import encoder as encoder
