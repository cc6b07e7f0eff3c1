// CarillonServer: the network layer around the core.
//
// `Lifecycle/CarillonServer.swift` is a complete server: it opens the store, creates the core (`Domain.swift` for the process,
// `HomeDomain.swift` for a home), and serves requests.
//
// Connections are in `Connections/`: `HTTPConnectionHandler.swift` runs a `RequestMachine`, which reads requests one after
// another. After a WebSocket handshake, `Sockets/SocketHandler.swift` runs the core's `SessionMachine`.
// `HTTP/PublishHandler.swift` handles the messages of senders directly. All other requests pass through Hummingbird's router to
// the routes in `HTTP/`. Each route decodes the request, calls one function of the core, and encodes the response.
//
// Calls to backends are in `Outward/`. `Watches/WatchRunner.swift` starts them when they are due.
