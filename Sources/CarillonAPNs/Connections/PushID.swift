/// The ID of a push in the machines: its slot in the pool's table, and the number of the slot's use.
struct PushID: Hashable, Sendable {
    var slot: UInt32
    var generation: UInt32
}

/// The ID of one of a pool's connections, numbered in the order of their opening.
struct ConnectionID: Hashable, Sendable {
    var number: Int
}
