// CarillonBasics: helpers that several modules need and that the standard library does not have: text encodings (JSON, base64url,
// hexadecimal), the dates and delays of HTTP header fields, and a signal between tasks. This module does not depend on any other
// module of Carillon.
