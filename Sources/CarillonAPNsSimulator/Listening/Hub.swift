import Foundation
import NIOCore
import NIOSSL
import Synchronization

/// The state that all connections share: the service, the log of requests, the faults and the conditions.
final class Hub: Sendable {
    struct State: Sendable {
        var service: PushService
        var log: RequestLog
        var plan: FaultPlan
        var conditions: Conditions
        var clockOffset = Duration.zero
        var connections: [Int: ConnectionReport] = [:]
        var connectionCount = 0
        fileprivate(set) var waiters: [UInt64: Waiter] = [:]
        fileprivate(set) var waiterCount: UInt64 = 0

        init(service: PushService, log: RequestLog, plan: FaultPlan, conditions: Conditions) {
            self.service = service
            self.log = log
            self.plan = plan
            self.conditions = conditions
        }
    }

    struct Waiter: Sendable {
        var isMet: @Sendable (borrowing State) -> Bool
        var continuation: CheckedContinuation<Void, any Error>
    }

    private static let rememberedConnections = 1000

    private let state: Mutex<State>
    /// Avoids the lock for each request while there are no faults.
    private let hasFaults = Atomic(false)
    private let hasWaiters = Atomic(false)

    init(_ state: State) {
        hasFaults.store(!state.plan.isEmpty, ordering: .relaxed)
        self.state = Mutex(state)
    }

    /// Reads or changes the state.
    func withState<Result>(_ body: (inout State) throws -> Result) rethrows -> Result {
        let (result, met) = try state.withLock { state in
            let result = try body(&state)
            hasFaults.store(!state.plan.isEmpty, ordering: .relaxed)
            return (result, takeMet(&state))
        }
        for waiter in met { waiter.continuation.resume() }
        return result
    }

    /// Returns the present time of the simulator's own clock.
    func now(_ state: borrowing State) -> Timestamp { Timestamp(Date()) + state.clockOffset }

    // MARK: Requests

    func rule(path: String, connection: Int, stream: UInt32) -> FaultRule? {
        guard hasFaults.load(ordering: .relaxed) else { return nil }
        return withState { state in
            let rule = state.plan.rule(path: path, connection: connection, stream: stream)
            if rule != nil { state.log.faultHappened() }
            return rule
        }
    }

    /// Processes a complete request.
    func answer(_ request: Submission, connection: Int, stream: UInt32, binding: inout ConnectionBinding) -> SimulatorAnswer
    {
        let (answer, met) = state.withLock { state in
            let now = now(state)
            let answer = state.service.received(request, on: &binding, at: now)
            let recordsBodies = state.log.recordsBodies
            state.log.answered(answer) { number in
                RequestLog.Request(
                    number: number, connection: connection, stream: stream, receivedAt: now.milliseconds,
                    environment: request.environment, method: request.method, path: request.path,
                    headers: request.fields.named, keyID: binding.keyID,
                    payload: recordsBodies ? Array(request.payload.readableBytesView) : [],
                    payloadBytes: request.payloadBytes, status: answer.status, reason: answer.reason, id: answer.id)
            }
            return (answer, takeMet(&state))
        }
        for waiter in met { waiter.continuation.resume() }
        return answer
    }

    // MARK: Connections

    func opened(in environment: Environment) -> (report: ConnectionReport, conditions: Conditions) {
        withState { state in
            state.connectionCount += 1
            let report = ConnectionReport(
                number: state.connectionCount, environment: environment, openedAt: now(state).milliseconds)
            state.connections[report.number] = report
            state.connections[report.number - Self.rememberedConnections] = nil
            return (report, state.conditions)
        }
    }

    func update(_ report: ConnectionReport) {
        withState { state in
            if state.connections[report.number] != nil { state.connections[report.number] = report }
        }
    }

    func closed(_ report: ConnectionReport) {
        withState { state in
            guard state.connections[report.number] != nil else { return }
            var report = report
            report.closedAt = now(state).milliseconds
            state.connections[report.number] = report
        }
    }

    // MARK: Waiting

    private func takeMet(_ state: inout State) -> [Waiter] {
        guard hasWaiters.load(ordering: .relaxed) else { return [] }
        let met = state.waiters.filter { $0.value.isMet(state) }
        for key in met.keys { state.waiters[key] = nil }
        hasWaiters.store(!state.waiters.isEmpty, ordering: .relaxed)
        return Array(met.values)
    }

    /// Returns when the state meets the condition, or throws when the task is cancelled.
    func wait(until isMet: @escaping @Sendable (borrowing State) -> Bool) async throws {
        let key = state.withLock { state in
            state.waiterCount += 1
            return state.waiterCount
        }
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let isDone = state.withLock { state in
                    if Task.isCancelled || isMet(state) { return true }
                    state.waiters[key] = Waiter(isMet: isMet, continuation: continuation)
                    hasWaiters.store(true, ordering: .relaxed)
                    return false
                }
                if isDone { continuation.resume() }
            }
        } onCancel: {
            let waiter = state.withLock { $0.waiters.removeValue(forKey: key) }
            waiter?.continuation.resume(throwing: CancellationError())
        }
        try Task.checkCancellation()
    }
}

extension RequestFields {
    /// The fields by their names, without `authorization`.
    var named: [String: String] {
        var named: [String: String] = [:]
        named["apns-id"] = id
        named["apns-request-id"] = requestID
        named["apns-push-type"] = pushType
        named["apns-topic"] = topic
        named["apns-expiration"] = expiration
        named["apns-priority"] = priority
        named["apns-collapse-id"] = collapseID
        named["apns-channel-id"] = channelID
        return named
    }
}
