package import CarillonCore

/// The way to a vendor's push service, for the pushes of one push queue.
package protocol PushGateway: Sendable {
    /// Sends a push once, and says what became of it.
    func send(_ push: LeasedPush) async -> PushAnswer
    /// No push is given to it any more; what is under way is answered.
    func close() async
}
