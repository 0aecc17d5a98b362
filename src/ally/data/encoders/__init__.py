"""Pretrained encoders: a text or a photo in, a vector out. Made once, kept by content, resumable.

    from ally.data.encoders import encode, open_encoder
    X = encode(open_encoder("all-MiniLM-L6-v2"), texts, cache="vectors/", progress=None)   # (n, 384) float32

See `encode` for what it takes, `open_encoder` for which encoders there are, `base` for the contract.
"""

from ally.data.encoders.base import Encoder, EncoderKind, Function
from ally.data.encoders.opening import default_encoder, open_encoder
from ally.data.encoders.vectors import encode

__all__ = ["Encoder", "EncoderKind", "Function", "default_encoder", "encode", "open_encoder"]
