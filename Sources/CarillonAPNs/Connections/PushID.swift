/// One push on its way, as the machines name it: its place in the pool's table, and which of those that held the place.
struct PushID: Hashable, Sendable {
    var slot: UInt32
    var generation: UInt32
}

/// One of a pool's connections, counted from its beginning.
struct ConnectionID: Hashable, Sendable {
    var number: Int
}
