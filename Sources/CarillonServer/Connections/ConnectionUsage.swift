import CarillonCore
import CarillonWire
import Synchronization

/// The address and the device for which an HTTP connection is counted, and the poll or the answer that its present request waits
/// for. Routes and the connection use it. A request from another process is counted separately.
final class ConnectionUsage: Sendable {
    private struct State {
        var isClosed = false
        /// The address for which the connection is counted. Behind a proxy, this is the address of the present request.
        var address: NetworkAddress?
        /// The device of the present request.
        var device: DeviceSerial?
        var isReserved = false
        var refusedPlace: ConnectionQuotas.RefusedPlace?
        /// Whether the connection comes from this machine or from a proxy, and carries requests of many clients.
        var isShared = false
        var poll: WaitingPoll?
        var answer: AnswerReservation?
    }

    private let quotas: ConnectionQuotas
    /// The address of a client whose connection another process counts.
    private let countedAddress: NetworkAddress?
    private let state = Mutex(State())

    /// - Parameter address: The address of the client, if another process accepted and counts the connection.
    init(of quotas: ConnectionQuotas, countedFor address: NetworkAddress? = nil) {
        self.quotas = quotas
        countedAddress = address
    }

    // MARK: The connection

    /// Counts a new connection.
    ///
    /// - Returns: A refusal if the address has reached its limit of connections.
    func opened(from peer: NetworkAddress?) -> Refusal? {
        guard !quotas.isBehindProxy, let peer, !peer.isLoopback else {
            state.withLock { $0.isShared = true }
            return nil
        }
        return count(peer)
    }

    /// Counts a connection beyond a limit. The connection stays open for a moment, for a health check or for a refusal of its
    /// request.
    ///
    /// - Returns: False if there are too many such connections.
    func takeRefusedPlace(_ place: ConnectionQuotas.RefusedPlace) -> Bool {
        guard quotas.refused.take(place) else { return false }
        state.withLock { $0.refusedPlace = place }
        return true
    }

    /// Reserves a slot for a health check, until the request ends.
    func takeReserve() -> Bool {
        guard quotas.reserve.take(0) else { return false }
        state.withLock { $0.isReserved = true }
        return true
    }

    /// Ends the counting of a connection that was closed or became a socket.
    func closed() {
        let before = state.withLock { state in
            defer { state = State(isClosed: true) }
            return state
        }
        release(before)
        if let place = before.refusedPlace { quotas.refused.release(place) }
        before.poll?.end()
    }

    // MARK: A request

    /// Counts a request that came through a proxy.
    ///
    /// - Parameter address: The client's.
    /// - Returns: A refusal if the address has reached its limit of connections.
    func requestBegan(for address: NetworkAddress?) -> Refusal? {
        guard quotas.isBehindProxy, let address, !address.isLoopback else { return nil }
        return count(address)
    }

    private func count(_ address: NetworkAddress) -> Refusal? {
        guard quotas.connections.take(address.owner) else {
            return Refusal(
                .rateLimited,
                "One address can have up to \(quotas.connections.limit) connections at a time; close one, or retry later.",
                retryAfterSeconds: 10)
        }
        let isClosed = state.withLock { state in
            if !state.isClosed { state.address = address.owner }
            return state.isClosed
        }
        if isClosed { quotas.connections.release(address.owner) }
        return nil
    }

    /// Counts the request for a device that was authenticated.
    ///
    /// - Throws: ``ErrorCode/rateLimited`` if the device has as many requests in progress as it may have connections.
    func claim(_ device: DeviceSerial) throws(Refusal) {
        let isNew = state.withLock { !$0.isClosed && $0.device != device }
        guard isNew else { return }
        guard quotas.devices.take(device) else {
            throw Refusal(
                .rateLimited,
                "A device can have up to \(quotas.devices.limit) connections at a time, in addition to its socket; close one, or retry later.",
                retryAfterSeconds: 5)
        }
        let unused = state.withLock { state -> DeviceSerial? in
            // The connection can have ended meanwhile.
            if state.isClosed { return device }
            defer { state.device = device }
            return state.device
        }
        if let unused { quotas.devices.release(unused) }
    }

    /// The device of the present request.
    var device: DeviceSerial? { state.withLock { $0.device } }

    /// The client's address; nil if connections of this address are not counted.
    var address: NetworkAddress? { countedAddress ?? state.withLock { $0.address } }

    /// Ends the counting of an answered request. Until the next request, the connection is not counted for a device, and a
    /// proxy's connection is not counted for an address.
    func requestEnded() {
        let before = state.withLock { state in
            var ended = State()
            (ended.device, ended.isReserved) = (state.device, state.isReserved)
            (state.device, state.isReserved) = (nil, false)
            if state.isShared {
                ended.address = state.address
                state.address = nil
            }
            return ended
        }
        release(before)
    }

    private func release(_ state: State) {
        if let address = state.address { quotas.connections.release(address) }
        if let device = state.device { quotas.devices.release(device) }
        if state.isReserved { quotas.reserve.release(0) }
    }

    // MARK: Results of routes beside their response

    /// Stores a poll that is answered later. The result of the route is not the answer.
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

    /// Stores the reserved memory of an answer.
    func keep(_ answer: AnswerReservation) { state.withLock { $0.answer = answer } }

    func takeAnswer() -> AnswerReservation? {
        state.withLock { state in
            defer { state.answer = nil }
            return state.answer
        }
    }
}
