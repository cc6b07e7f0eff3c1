/// The cause of a ``PushError``: a connection to a server failed, or another program responded in the server's place.
struct ConnectionFailure: Error, Hashable, Sendable, CustomStringConvertible {
    /// The address as the app configured it or the server sent it.
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

    /// Makes the failure for the address of a socket, which the server sent.
    init(_ error: any Error, at socket: WebAddress, sentBy server: WebAddress) {
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

    /// - Parameter purpose: The purpose of the connection: "to register the device".
    func error(_ code: PushError.Code = .serverUnreachable, _ purpose: String? = nil) -> PushError {
        let sentence = "Cannot connect to \(address)\(purpose.map { " " + $0 } ?? ""): \(reason.summary)."
        return PushError(code, sentence + (reason.advice.map { " " + $0 } ?? ""), cause: self)
    }
}
