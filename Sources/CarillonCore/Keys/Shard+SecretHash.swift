package import CarillonWire

extension Shard {
    /// Returns the shard of a device that registers. A repeated registration has the same shard.
    ///
    /// - Parameter registration: The hash of the secret that the device chose for its registration.
    package init(of app: AppID, registration: SecretHash) {
        self.init(hashing: 0, Array(app.text.utf8) + registration.bytes)
    }

    /// Returns the shard of a device that connects without a registration.
    ///
    /// - Parameter hash: The hash of its ``UserAgentID``.
    package init(ofUserAgent hash: SecretHash) { self.init(hashing: 0, hash.bytes) }
}
