// CarillonServer: the edge, where the world meets the core.
//
// `Lifecycle/CarillonServer.swift` is the whole of a running server: it opens the store, puts the core together
// (`Domain.swift` for the process, `HomeDomain.swift` for a home), and serves. A connection arrives in `Connections/`:
// `HTTPConnectionHandler.swift` runs a `RequestMachine`,
// which reads one request after the other. A WebSocket handshake makes it a `Sockets/SocketHandler.swift`, which feeds
// the core's `SessionMachine`; a sender's message goes straight to `HTTP/PublishHandler.swift`; everything else goes
// through Hummingbird's router to the routes in `HTTP/`. Each decodes, calls one function of the core, encodes.
// Calls to back ends leave by `Outward/`, when `Watches/WatchRunner.swift` finds them due.
