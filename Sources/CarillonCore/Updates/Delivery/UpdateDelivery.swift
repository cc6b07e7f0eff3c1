package import CarillonBasics
import CarillonWire
import Metrics
import Synchronization

/// Delivers updates to the devices of their audiences: evaluates an app's log for a binding, puts matching updates into the
/// inbox, sends failed updates again, and withdraws updates that ended.
///
/// The log is evaluated when a device polls, connects or changes its parameters, and for present devices when an update is
/// published. Each matching update is written with its envelope in one transaction, and afterwards the place up to which the log
/// was evaluated. If the server stops in between, the log is evaluated again; updates with a completion are then skipped.
package final class UpdateDelivery: Sendable {
    let store: any UpdateStore & DeviceStore
    let logs: UpdateLogs
    let home: any LocalHome
    let others: OtherHomes
    let limits: UpdateLimits
    let time: TimeSource
    let ticks: TickSource
    let random: RandomSource
    private let pace = Mutex(PollPace())
    private let changes = Mutex(ParameterChanges())
    /// The number of times that a log was evaluated for a device.
    package var evaluations: Int { evaluationCount.load(ordering: .relaxed) }
    let evaluationCount = Atomic(0)
    let turns = EvaluationTurns()
    let present = Mutex<[AppSerial: PresentDevices]>([:])
    /// When the audit is next cleaned, by the monotonic clock; nil: now.
    let auditTended = Mutex<Int64?>(nil)
    /// When updates that ended are next cleaned.
    let endedTended = Mutex<Int64?>(nil)
    let steps = BackwardSteps()
    /// When ended updates are next searched for unfinished completions.
    let unfinishedTended = Mutex<Int64?>(nil)

    let offered = ServerMetric.updatesOffered.counter("first")
    let offeredAgain = ServerMetric.updatesOffered.counter("again")
    let full = ServerMetric.updatesOffered.counter("inbox_full")
    let resyncs = ServerMetric.updatesOffered.counter("resync")
    let coalesced = ServerMetric.updatesOffered.counter("absorbed")
    let retracted = ServerMetric.updatesOffered.counter("taken_back")
    let faults = ServerMetric.updateFaults.counter()
    private let results = ["done", "deferred", "failed", "unsupported", "ignored"].reduce(into: [:]) { counters, result in
        counters[result] = ServerMetric.updateResults.counter(result)
    }

    /// - Parameter others: The other homes. With them, the logs are shared (``UpdateLogs/isShared``).
    package init(
        store: any UpdateStore & DeviceStore, logs: UpdateLogs, home: any LocalHome, others: OtherHomes = .none,
        limits: UpdateLimits, time: TimeSource, ticks: TickSource, random: RandomSource
    ) {
        self.store = store
        self.logs = logs
        self.home = home
        self.others = others
        self.limits = limits
        self.time = time
        self.ticks = ticks
        self.random = random
    }

    // MARK: Polls

    /// The data that a device reports in a poll.
    package struct PollReport: Sendable {
        package var profile: String
        /// Nil if the kinds have not changed since the last report; the same applies to `parameters`.
        package var kinds: Set<String>?
        package var parameters: (revision: String, values: JSONValue)?
        package var results: [ReportedResult]
        /// The place up to which the device received envelopes, if it reports one.
        package var receivedTo: ReceivedTo?
        /// Whether the device lost updates that it had received.
        package var offersAgain: Bool
        /// Whether the device may also have lost updates that it had processed.
        package var needsResync: Bool

        package init(
            profile: String, kinds: Set<String>?, parameters: (revision: String, values: JSONValue)?,
            results: [ReportedResult], receivedTo: ReceivedTo?, offersAgain: Bool, needsResync: Bool
        ) {
            self.profile = profile
            self.kinds = kinds
            self.parameters = parameters
            self.results = results
            self.receivedTo = receivedTo
            self.offersAgain = offersAgain
            self.needsResync = needsResync
        }
    }

    /// Reads a polling device, and whether anything waits for it. Nil if the device does not exist or `isRight` rejects it.
    package func visit(of name: DeviceName, isRight: (Device) -> Bool) async throws -> PollVisit? {
        let moment = home.beginVisit()
        guard var visit = try await store.poll(of: name, at: time.now()), isRight(visit.device) else { return nil }
        if home.isOutdated(visit.device.serial, readAfter: moment) { visit.waiting = nil }
        return visit
    }

    /// Whether a poll of a device with an empty inbox reports nothing new and needs no further work. This is the case for most
    /// polls.
    package func isUpToDate(_ report: PollReport, by device: Device, _ binding: UpdateBinding) async throws -> Bool {
        let began = ticks.now()
        guard report.results.isEmpty, !report.offersAgain, !(report.receivedTo.map(binding.isBehind) ?? false),
            report.kinds.map({ $0 == binding.kinds }) ?? true,
            report.parameters.map({ $0.revision == binding.parametersRevision }) ?? true
        else { return false }
        note(device, report.profile, binding)
        guard try await isEvaluated(binding, of: device) else { return false }
        pace.withLock { $0.note(seconds: Double(ticks.now() - began) / 1e9) }
        return true
    }

    /// Returns the binding of a device and a profile, and creates it if needed.
    ///
    /// - Throws: ``Refusal`` if the device or its app was deleted in the meantime, or if the device has too many profiles.
    package func binding(of device: Device, profile: String) async throws -> UpdateBinding {
        if let binding = try await store.binding(of: device.serial, profile: profile, at: time.now()) { return binding }
        guard try await store.device(device.serial) != nil else { throw DeviceRegistrar.credentialInvalid }
        throw Refusal(
            .profilesTooMany,
            "A device can have up to \(UpdateBinding.mostOfDevice) profiles, counted over all of its users.")
    }

    /// Applies a device's report: first results, then parameters. Then puts matching updates into its inbox.
    ///
    /// - Parameter isAnyDue: Whether completions of the binding are due, as far as is known.
    /// - Returns: An answer for each result, and the binding after the changes.
    package func take(
        _ poll: PollReport, from device: Device, _ binding: UpdateBinding, isAnyDue: Bool = true
    ) async throws -> (answers: [ReportAnswer], binding: UpdateBinding) {
        let began = ticks.now()
        defer { pace.withLock { $0.note(seconds: Double(ticks.now() - began) / 1e9) } }
        let report = try await report(poll, of: binding)
        note(device, poll.profile, binding)
        var after = try await change(binding, poll, of: device)
        if poll.offersAgain {
            try await store.offerAgain(to: after.serial, needsResync: poll.needsResync, at: time.now())
            after.needsResync = after.needsResync || poll.needsResync
        }
        let isAsBefore = !poll.offersAgain && after == binding
        let mayBeDue = try await evaluate(after, of: device)
        if mayBeDue || !isAsBefore || report?.isAnyDue ?? isAnyDue { try await resendDue(to: after.serial) }
        return (report?.answers ?? [], after)
    }

    /// Returns the present revision of a binding's parameters, which may have changed since the binding was read.
    package func parametersRevision(of binding: UpdateBinding) -> String? {
        changes.withLock { $0.last(of: binding.serial, after: binding.revision) } ?? binding.parametersRevision
    }

    /// Removes the log of a deleted app from memory.
    package func forget(_ app: AppSerial) { logs.forget(app) }

    /// The delay before a device should poll again; nil if no delay is needed.
    package var retryAfterSeconds: Int? { pace.withLock { $0.retryAfterSeconds } }

    /// Returns nil if the poll has no results and no new position.
    private func report(
        _ poll: PollReport, of binding: UpdateBinding
    ) async throws -> (answers: [ReportAnswer], isAnyDue: Bool)? {
        let place = poll.receivedTo.flatMap { binding.isBehind($0) ? $0 : nil }
        guard place != nil || !poll.results.isEmpty else { return nil }
        let report = try await store.report(
            poll.results, receivedTo: place, of: binding.serial, at: time.now())
        for (reported, answer) in zip(poll.results, report.answers) {
            guard case .taken(let envelope) = answer else {
                self.results["ignored"]?.increment()
                continue
            }
            self.results[reported.result.name]?.increment()
            if let envelope { try await takeOut([envelope], of: binding.device, as: .acknowledged) }
        }
        return report
    }

    private func change(_ binding: UpdateBinding, _ report: PollReport, of device: Device) async throws -> UpdateBinding {
        var before = binding
        for _ in 0..<Self.changeAttempts {
            let wanted = try await changed(before, report, of: device)
            if wanted == before { return before }
            if let changed = try await write(wanted, over: before, of: device) { return changed }
            before = try await self.binding(of: device, profile: report.profile)
        }
        throw Refusal(
            .overloaded, "Other requests change the device's parameters at the same time; retry.", retryAfterSeconds: 1)
    }

    /// Returns nil if a concurrent change was written first.
    private func write(
        _ wanted: UpdateBinding, over before: UpdateBinding, of device: Device
    ) async throws -> UpdateBinding? {
        // Envelopes that the device acknowledged must count as received.
        if !before.kinds.subtracting(wanted.kinds).isEmpty {
            await home.flush(device.serial)
        }
        present.withLock { $0[device.app]?.changes(device.serial) }
        let change = try await store.change(wanted, hasOtherKinds: wanted.kinds != before.kinds, at: time.now())
        guard let change else { return nil }
        if let revision = change.binding.parametersRevision {
            changes.withLock { $0.changed(change.binding.serial, to: revision, version: change.binding.revision) }
        }
        await withdraw(change.takenOut, from: device.serial)
        return change.binding
    }

    private func changed(_ binding: UpdateBinding, _ report: PollReport, of device: Device) async throws -> UpdateBinding {
        var wanted = binding
        if let kinds = report.kinds { wanted.kinds = kinds }
        if let parameters = report.parameters, parameters.revision != binding.parametersRevision {
            wanted.values = try ParameterValues(parameters.values, by: try await logs.log(of: device.app).rules)
            wanted.parametersRevision = parameters.revision
            wanted.locatedAt = wanted.values.hasLocation ? time.now() : nil
        }
        return wanted
    }

    private static let changeAttempts = 3
}
