/// Limits for the size of an item and for the updates that wait for it.
package enum ItemLimits {
    package static let fields = 100
    package static let fieldNameBytes = 64
    /// The bytes of one value.
    package static let valueBytes = 4096
    /// The bytes of all fields of an item, including their names.
    package static let itemBytes = 32_768
    package static let itemsPerApp = 100_000
    /// The number of sources of an item whose last sequence number is stored. The source with the oldest update is removed first.
    package static let sources = 8
    package static let sourceBytes = 64
    /// Updates of one item that wait to be evaluated.
    package static let waitingUpdates = 1000
    package static let waitingBytes = 1 << 20
}
