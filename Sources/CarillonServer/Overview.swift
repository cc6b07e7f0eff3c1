// CarillonServer: the edge, where the world meets the core.
//
// `Lifecycle/CarillonServer.swift` is the whole of a running server: it opens the store, puts the core together
// (`Core.swift`), and serves. A connection arrives in `Connections/`, which tells sockets from plain HTTP; sockets are
// `Sockets/SocketHandler.swift`, a handler on an event loop that feeds the core's `SessionMachine`; everything else
// goes through Hummingbird to the routes in `HTTP/`. Each route decodes, calls one function of the core, encodes.
