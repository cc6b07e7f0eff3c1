package import CarillonCore
import CarillonWire
import Synchronization

/// A home over a link that behaves like a link to another process: calls and answers are delayed, and the link can be cut.
///
/// A server with several homes reaches each of them in this way, so that its tests find code that depends on a single process.
///
/// - **Order.** The calls about one device are sent in the order in which they are made, and so are the calls of the home to one
///   session. A call does not wait for the home's answer to the call before. Requests and questions can overtake each other and
///   all other calls.
/// - **Delay.** A call, its answer, and a call of the home to a session take up to 20 milliseconds each.
/// - **Cut.** See ``cut()``.
/// - **Limits.** See ``Limits``.
package final class LinkedHome: Home {
    private struct Connected {
        weak var homes: Homes?
    }

    private let home: any Home
    private let link: HomeLink
    private let delay: LinkDelay
    private let limits: Limits
    private let others = Mutex(Connected())

    private static let bytesOfArrival = 256
    private static let bytesOfCall = 64
    private static let bytesOfQuestion = 1024

    /// - Parameters:
    ///   - random: Determines the delays.
    ///   - longestDelay: In milliseconds.
    package init(_ home: any Home, random: RandomSource, longestDelay: Int = 20, limits: Limits = Limits()) {
        self.home = home
        self.limits = limits
        delay = LinkDelay(random: random, longest: longestDelay)
        link = HomeLink(delay: delay, limits: limits)
    }

    // MARK: The link

    /// Cuts the link.
    ///
    /// - A call that was not sent fails with ``HomeFault/unreachable``, and so does each call until ``restore()``.
    /// - A call that was sent and has no answer fails with ``HomeFault/outcomeUnknown``. It can still take effect at the home,
    ///   and its answer is ignored. If its body is streamed, the call is cancelled at the home.
    /// - Each session that arrived over the link, or is arriving, ends with ``SessionEnd/linkLost`` and leaves the home.
    package func cut() { link.cut() }

    /// Restores the link, so that it accepts calls again.
    package func restore() { link.restore() }

    /// Sets the homes in which sessions of moving devices find their new home. The link refers to the homes weakly.
    package func connect(_ homes: Homes) { others.withLock { $0.homes = homes } }

    /// The number of calls that were not sent yet.
    var waitingCalls: Int { link.waitingCalls }

    /// Waits until the home has received all earlier calls about devices.
    package func flush() async { await link.flush() }

    // MARK: Arrivals

    package func arrive(
        _ name: DeviceName, _ proof: DeviceProof, _ load: PageRequest, speaking version: Int, openedAt: OpeningTime,
        as session: any LiveSession
    ) async throws(HomeFault) -> Arrived {
        let arrival = Arrival(name: name, proof: proof, version: version, openedAt: openedAt)
        return try await connect(session, by: arrival) { [home] (linked) async throws(HomeFault) -> Arrived in
            try await home.arrive(name, proof, load, speaking: version, openedAt: openedAt, as: linked)
        }
    }

    /// The parameters of an arrival.
    private struct Arrival: Sendable {
        var name: DeviceName
        var proof: DeviceProof
        var version: Int
        var openedAt: OpeningTime
    }

    private func connect(
        _ session: any LiveSession, by arrival: Arrival,
        _ arrive: @escaping @Sendable (LinkedSession) async throws(HomeFault) -> Arrived
    ) async throws(HomeFault) -> Arrived {
        let (name, queue) = (arrival.name, LinkQueueName(arrival.name))
        let linked = LinkedSession(
            session, delay: delay, limits: limits, onLost: { [weak self] in self?.left($0, queue) },
            onMoved: { [weak self] in self?.moved($0, from: queue, arrival) })
        return try await link.call(by: queue, bytes: Self.bytesOfArrival, as: linked) {
            [home, link] () async throws(HomeFault) -> Arrived in
            do throws(HomeFault) {
                let arrived = try await arrive(linked)
                if let device = arrived.device?.device.serial {
                    guard link.connect(linked, to: device, queue) else {
                        home.leave(linked, of: device)
                        throw HomeFault.unreachable
                    }
                } else {
                    link.forget(linked, of: queue)
                }
                return arrived
            } catch {
                if error == .outcomeUnknown { home.leave(linked, of: name) }
                link.forget(linked, of: queue)
                throw error
            }
        }
    }

    // MARK: Calls about a device

    package func read(_ load: PageRequest, of device: DeviceSerial) async throws(HomeFault) -> Result<InboxRead, StoreFault>
    {
        try await link.call(by: .serial(device), bytes: Self.bytesOfCall) {
            [home] () async throws(HomeFault) -> Result<InboxRead, StoreFault> in
            try await home.read(load, of: device)
        }
    }

    package func finish(_ answer: EnvelopeAnswer, of device: DeviceSerial) {
        let isSent = link.send(by: .serial(device), bytes: Self.bytesOfCall) { [home] in home.finish(answer, of: device) }
        if !isSent { link.loseAnswer(of: device) }
    }

    /// The link finds the device of the session itself. The home would have to search all its sessions for a name.
    package func leave(_ session: any LiveSession, of name: DeviceName) { leave(session) }

    package func leave(_ session: any LiveSession, of device: DeviceSerial) { leave(session) }

    private func leave(_ session: any LiveSession) {
        if let arrived = link.arrived(session) { left(arrived.session, arrived.queue) }
    }

    /// Removes a session from the home, after its arrival and the other calls about its device.
    private func left(_ session: LinkedSession, _ queue: LinkQueueName) {
        link.leave(session, by: queue) { [home, link] in
            if let device = session.device { home.leave(session, of: device) }
            link.forget(session, of: queue)
        }
    }

    /// The home passed the device of a session to another home, and no longer has the session.
    ///
    /// - Returns: A function with which the session arrives at the new home.
    private func moved(
        _ session: LinkedSession, from queue: LinkQueueName, _ arrival: Arrival
    ) -> @Sendable () async -> ArrivedAgain {
        link.forget(session, of: queue)
        let homes = others.withLock { $0.homes }
        let connection = session.session
        return { [weak homes] in
            guard let homes else { return .failed(StoreFault(.unavailable, "the link has no other homes")) }
            return await homes.arriveAgain(
                arrival.name, arrival.proof, speaking: arrival.version, openedAt: arrival.openedAt, as: connection)
        }
    }

    // MARK: Requests and questions

    package func handle(_ request: HomeRequest) async throws(HomeFault) -> HomeResponse {
        let cuts = link.cuts
        var sent = request
        var hasParts = false
        if case .parts(let parts) = request.body {
            hasParts = true
            sent.body = .parts(linked(parts, since: cuts))
        }
        var response = try await link.pass(bytes: request.byteCount, endsWithLink: hasParts) {
            [home, sent] () async throws(HomeFault) -> HomeResponse in
            try await home.handle(sent)
        }
        if case .parts(let parts) = response.body { response.body = .parts(linked(parts, since: cuts)) }
        return response
    }

    package func ask<Question: HomeQuestion>(
        _ question: Question
    ) async throws(HomeFault) -> Result<Question.Answer, any Error> {
        try await link.pass(bytes: Self.bytesOfQuestion) {
            [home] () async throws(HomeFault) -> Result<Question.Answer, any Error> in
            try await home.ask(question)
        }
    }

    private func linked<Parts: AsyncSequence & Sendable>(
        _ parts: Parts, since cuts: Int
    ) -> any AsyncSequence<[UInt8], any Error> & Sendable where Parts.Element == [UInt8], Parts.Failure == any Error {
        LinkedParts(parts: parts) { [link] in link.cuts != cuts }
    }
}

extension HomeRequest {
    /// The size of the request in bytes, without a streamed body.
    fileprivate var byteCount: Int {
        let head = method.utf8.count + path.utf8.count
        let fields = fields.reduce(0) { $0 + $1.name.utf8.count + $1.value.utf8.count }
        if case .whole(let body) = body { return head + fields + body.count }
        return head + fields
    }
}
