"""Features of pictures and texts: cached, and resumed after an interruption.

Stored features are looked up by the content of the item and by the encoder. Importing this
package loads neither torch nor PIL.
"""

from newfound.encode.encoder import Encoded
from newfound.encode.pictures import encode_pictures
from newfound.encode.texts import encode_texts

__all__ = ["Encoded", "encode_pictures", "encode_texts"]
