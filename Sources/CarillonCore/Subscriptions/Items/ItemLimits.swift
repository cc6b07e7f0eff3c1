/// How much an item may hold, and how much of it may wait.
package enum ItemLimits {
    package static let fields = 100
    package static let fieldNameBytes = 64
    /// Of one value.
    package static let valueBytes = 4096
    /// Of all fields of an item, their names among them.
    package static let itemBytes = 32_768
    package static let itemsPerApp = 100_000
    /// Publishers whose place in their own sequence is remembered of an item; the least recent goes first.
    package static let sources = 8
    package static let sourceBytes = 64
    /// Updates of one item that wait to be evaluated.
    package static let waitingUpdates = 1000
    package static let waitingBytes = 1 << 20
}
