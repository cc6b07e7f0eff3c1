// CarillonWire: the words that server and client share.
//
// What passes between a Carillon server and the programs around it is named here once: identifiers, the frames
// of the socket, the bodies of the HTTP API, the catalogue of errors, and the limits that both sides may count
// on. Nothing here does I/O.
//
// Start with `Frames/ClientFrame.swift` and `Frames/ServerFrame.swift` for the socket, with `HTTPBodies/` for
// the API, and with `Errors/ErrorCode.swift` for everything that can be refused.
