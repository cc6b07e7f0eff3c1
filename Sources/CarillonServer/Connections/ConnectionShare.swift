import CarillonCore
import CarillonWire
import Synchronization

/// Of one connection for HTTP: whose it is, and what its request waits for. Routes and the connection both use it.
final class ConnectionShare: Sendable {
    private struct State {
        var isClosed = false
        /// The address and the device that the connection is counted for.
        var address: NetworkAddress?
        var device: DeviceSerial?
        var isReserved = false
        /// The connection comes from this machine or from a proxy, and is used for many clients.
        var isShared = false
        /// The device has too many connections: this one closes.
        var closes = false
        var poll: WaitingPoll?
        var answer: AnswerPlace?
    }

    private let shares: ConnectionShares
    private let state = Mutex(State())

    init(of shares: ConnectionShares) { self.shares = shares }

    // MARK: The connection

    /// The connection was made.
    ///
    /// - Returns: A refusal if its address has as many as it may.
    func opened(from peer: NetworkAddress?) -> Refusal? {
        guard !shares.isBehindProxy, let peer, !peer.isLoopback else {
            state.withLock { $0.isShared = true }
            return nil
        }
        return count(peer)
    }

    /// Takes a place in the reserve for health checks.
    func takeReserve() -> Bool {
        guard shares.reserve.take(0) else { return false }
        state.withLock { $0.isReserved = true }
        return true
    }

    /// The connection ended, or became a socket.
    func closed() {
        let before = state.withLock { state in
            defer { state = State(isClosed: true) }
            return state
        }
        giveBack(before)
        if before.isReserved { shares.reserve.giveBack(0) }
        before.poll?.end()
    }

    // MARK: A request

    /// A request came by a proxy.
    ///
    /// - Parameter address: The client's.
    /// - Returns: A refusal if it has as many connections as it may.
    func requestBegan(for address: NetworkAddress?) -> Refusal? {
        guard shares.isBehindProxy, let address, !address.isLoopback else { return nil }
        return count(address)
    }

    private func count(_ address: NetworkAddress) -> Refusal? {
        guard shares.connections.take(address.owner) else {
            return Refusal(
                .rateLimited, "One address can have \(shares.connections.limit) connections at a time.",
                retryAfterSeconds: 10)
        }
        state.withLock { $0.address = address.owner }
        return nil
    }

    /// The request is a device's, whose credential was right.
    ///
    /// - Throws: ``ErrorCode/rateLimited`` if it has as many connections as it may.
    func claim(_ device: DeviceSerial) throws(Refusal) {
        let isNew = state.withLock { !$0.isClosed && $0.device != device }
        guard isNew else { return }
        guard shares.devices.take(device) else {
            state.withLock { $0.closes = !$0.isShared }
            throw Refusal(
                .rateLimited, "A device can have \(shares.devices.limit) connections at a time, besides its socket.",
                retryAfterSeconds: 5)
        }
        let unused = state.withLock { state -> DeviceSerial? in
            // The connection may have ended meanwhile.
            if state.isClosed { return device }
            defer { state.device = device }
            return state.device
        }
        if let unused { shares.devices.giveBack(unused) }
    }

    /// The device of the present request.
    var device: DeviceSerial? { state.withLock { $0.device } }

    /// Whether the answer is the last of its connection.
    var closes: Bool { state.withLock { $0.closes } }

    /// The request was answered. A connection of a proxy is nobody's until the next request.
    func requestEnded() {
        let before = state.withLock { state -> State? in
            guard state.isShared, state.address != nil || state.device != nil else { return nil }
            defer { (state.address, state.device) = (nil, nil) }
            return state
        }
        if let before { giveBack(before) }
    }

    private func giveBack(_ state: State) {
        if let address = state.address { shares.connections.giveBack(address) }
        if let device = state.device { shares.devices.giveBack(device) }
    }

    // MARK: What routes leave here beside their answer

    /// The request is answered later. What the route returns is not its answer.
    func park(_ poll: WaitingPoll) {
        let isClosed = state.withLock { state in
            if !state.isClosed { state.poll = poll }
            return state.isClosed
        }
        if isClosed { poll.end() }
    }

    func takePoll() -> WaitingPoll? {
        state.withLock { state in
            defer { state.poll = nil }
            return state.poll
        }
    }

    /// The answer's memory is counted already.
    func keep(_ answer: AnswerPlace) { state.withLock { $0.answer = answer } }

    func takeAnswer() -> AnswerPlace? {
        state.withLock { state in
            defer { state.answer = nil }
            return state.answer
        }
    }
}
