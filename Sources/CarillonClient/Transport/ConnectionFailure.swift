/// A server that could not be connected to, or that another program answered for: the cause of a ``PushError``.
struct ConnectionFailure: Error, Hashable, Sendable, CustomStringConvertible {
    /// As the app or the server gave it.
    let address: String
    let reason: ConnectionReason

    init(_ error: any Error, at address: String) {
        self.address = address
        reason = ConnectionReason(error)
    }

    init(_ reason: ConnectionReason, at address: String) {
        self.address = address
        self.reason = reason
    }

    /// A failure at the address of a socket, which the server gave.
    init(_ error: any Error, at socket: WebAddress, givenBy server: WebAddress) {
        address = socket.text
        let reason = ConnectionReason(error)
        guard socket.place != server.place else {
            self.reason = reason
            return
        }
        let origin =
            "The server at \(server.text) gave this address; its public-url must be an address that clients can reach."
        self.reason = ConnectionReason(
            reason.summary, advice: [reason.advice, origin].compactMap(\.self).joined(separator: " "))
    }

    var description: String { "cannot connect to \(address): \(reason.summary)" }

    /// - Parameter purpose: What was to be done: "to register the device".
    func error(_ code: PushError.Code = .serverUnreachable, _ purpose: String? = nil) -> PushError {
        let sentence = "Cannot connect to \(address)\(purpose.map { " " + $0 } ?? ""): \(reason.summary)."
        return PushError(code, sentence + (reason.advice.map { " " + $0 } ?? ""), cause: self)
    }
}
