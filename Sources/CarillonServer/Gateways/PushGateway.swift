package import CarillonCore

/// The connection to a vendor's push service, for the pushes of one push queue.
package protocol PushGateway: Sendable {
    /// Sends a push once, and returns the result.
    func send(_ push: LeasedPush) async -> PushAnswer
    /// Closes the gateway. The caller sends no further pushes. Pending pushes are still answered.
    func close() async
}
