// CarillonWire: the names and formats that server and client share.
//
// This module defines everything that a Carillon server exchanges with other programs: identifiers, the frames of the socket, the
// bodies of the HTTP API, the error codes, and the limits that both sides rely on. This module does no I/O.
//
// Start with `Frames/ClientFrame.swift` and `Frames/ServerFrame.swift` for the socket, with `HTTPBodies/` for the API, and with
// `Errors/ErrorCode.swift` for error codes.
