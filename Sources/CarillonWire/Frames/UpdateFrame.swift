/// An update for the device: to be acknowledged when it is kept, and to be reported on when it is processed.
package struct UpdateFrame: Equatable, Sendable {
    /// The envelope's identifier.
    package var version: String
    /// How often the device was given it, from one on; zero: it was taken back, and is not to be processed any more.
    package var attempt: Int
    /// Which entry into the audience it is for: what an update does is done once for each.
    package var entry: Int
    /// JSON: what was published.
    package var body: [UInt8]

    package init(version: String, attempt: Int, entry: Int, body: [UInt8]) {
        self.version = version
        self.attempt = attempt
        self.entry = entry
        self.body = body
    }
}
