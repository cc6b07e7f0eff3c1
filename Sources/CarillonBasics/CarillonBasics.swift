// CarillonBasics: what several rooms need alike, and the standard library does not have: text encodings (JSON, base64url,
// hexadecimal), the dates and waits of HTTP header fields, and a signal between tasks. It knows nothing of Carillon.
