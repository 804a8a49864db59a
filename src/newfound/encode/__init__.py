"""Features of pictures and texts: cached, and resumed after an interruption.

Features are stored by what they were made of, and by the encoder that made them. Importing this
package loads neither torch nor PIL.
"""

from newfound.encode.encoder import Encoded
from newfound.encode.pictures import encode_pictures
from newfound.encode.texts import encode_texts

__all__ = ["Encoded", "encode_pictures", "encode_texts"]
