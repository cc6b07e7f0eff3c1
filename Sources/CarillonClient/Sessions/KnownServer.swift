/// The server that the device belongs to, as far as it is known.
struct KnownServer: Sendable {
    /// The id of the server; nil if the server never sent it.
    var id: String?
    /// The address at which the device was registered, if that is another address than the configured one, and as long as it is not known
    /// which server has the configured address.
    var formerAddress: String?
    /// There was no connection at the address that the server gave: it may have another by now.
    var mustLocate = false
    /// The history of the server, as it said at the last connection of this run; nil of one that does not say it. Another one says that the
    /// server was restored from a backup.
    var history: String?
    /// The server may not have the subscriptions that it had.
    var mayHaveLostSubscriptions = false

    /// There is no device any more, or another one at the configured address.
    mutating func signedOut() { (id, formerAddress, mustLocate) = (nil, nil, false) }
}
