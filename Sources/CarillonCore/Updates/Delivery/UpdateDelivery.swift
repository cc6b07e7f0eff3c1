package import CarillonBasics
import CarillonWire
import Metrics
import Synchronization

/// Brings updates to the devices of their audiences: evaluates an app's log for a binding, puts what matches into its inbox, gives
/// again what failed, and takes back what ended.
///
/// The log is evaluated when a device polls, connects or changes its parameters, and for those that are there when an update is published. What
/// was found is written update by update, each with its envelope in one transaction, and after them how far it is: a stop between is
/// made up for by evaluating again, as what has a completion is passed over.
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
    /// How often a log was evaluated for a device.
    package var looks: Int { lookCount.load(ordering: .relaxed) }
    let lookCount = Atomic(0)
    let turns = EvaluationTurns()
    let present = Mutex<[AppSerial: PresentDevices]>([:])
    /// When the audit is looked at next, by the monotonic clock; nil: now.
    let auditTended = Mutex<Int64?>(nil)
    /// The same of updates that ended.
    let endedTended = Mutex<Int64?>(nil)
    let steps = BackwardSteps()
    /// When ended updates are searched for unfinished completions next.
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

    /// What a device says when it comes.
    package struct PollReport: Sendable {
        package var profile: String
        /// Nil where it said them before, as with parameters.
        package var kinds: Set<String>?
        package var parameters: (revision: String, values: JSONValue)?
        package var results: [ReportedResult]
        /// How far it received, where it says so.
        package var receivedTo: ReceivedTo?
        /// It lost what it had received.
        package var offersAgain: Bool
        /// It may have lost what it had processed, too.
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

    /// Finds a device that polls, and whether anything is for it. Nil where there is none, or it is not let in.
    package func visit(of name: DeviceName, isRight: (Device) -> Bool) async throws -> PollVisit? {
        let moment = home.beginVisit()
        guard var visit = try await store.poll(of: name, at: time.now()), isRight(visit.device) else { return nil }
        if home.isOutdated(visit.device.serial, readAfter: moment) { visit.waiting = nil }
        return visit
    }

    /// Whether a device whose inbox is empty, and that says nothing new, need not be looked at any further: so most polls are.
    package func isAllSaid(_ report: PollReport, by device: Device, _ binding: UpdateBinding) async throws -> Bool {
        let began = ticks.now()
        guard report.results.isEmpty, !report.offersAgain, !(report.receivedTo.map(binding.isBehind) ?? false),
            report.kinds.map({ $0 == binding.kinds }) ?? true,
            report.parameters.map({ $0.revision == binding.parametersRevision }) ?? true
        else { return false }
        note(device, report.profile, binding)
        guard try await isHeld(binding, of: device) else { return false }
        pace.withLock { $0.note(seconds: Double(ticks.now() - began) / 1e9) }
        return true
    }

    /// Returns the binding of a device and a profile, and begins it if needed.
    ///
    /// - Throws: ``Refusal`` if the device or its app was deleted meanwhile, or if the device has too many profiles.
    package func binding(of device: Device, profile: String) async throws -> UpdateBinding {
        if let binding = try await store.binding(of: device.serial, profile: profile, at: time.now()) { return binding }
        guard try await store.device(device.serial) != nil else { throw DeviceRegistrar.credentialInvalid }
        throw Refusal(
            .profilesTooMany,
            "A device can have up to \(UpdateBinding.mostOfDevice) profiles, counted over all of its users.")
    }

    /// Takes what a device says: results first, then parameters; and puts into its inbox what is for it.
    ///
    /// - Parameter isAnyDue: Whether something is to be given to it again, as far as is known.
    /// - Returns: What became of each result, and the binding as it is now.
    package func take(
        _ report: PollReport, from device: Device, _ binding: UpdateBinding, isAnyDue: Bool = true
    ) async throws -> (answers: [ReportAnswer], binding: UpdateBinding) {
        let began = ticks.now()
        defer { pace.withLock { $0.note(seconds: Double(ticks.now() - began) / 1e9) } }
        let report = try await report(report, of: binding)
        note(device, report.profile, binding)
        var after = try await change(binding, report, of: device)
        if report.offersAgain {
            try await store.offerAgain(to: after.serial, needsResync: report.needsResync, at: time.now())
            after.needsResync = after.needsResync || report.needsResync
        }
        let isAsBefore = !report.offersAgain && after == binding
        let mayBeDue = try await evaluate(after, of: device)
        if mayBeDue || !isAsBefore || report?.isAnyDue ?? isAnyDue { try await giveAgain(to: after.serial) }
        return (report?.answers ?? [], after)
    }

    /// The revision of a binding's parameters now, where it may have changed since they were read.
    package func parametersRevision(of binding: UpdateBinding) -> String? {
        changes.withLock { $0.last(of: binding.serial, after: binding.revision) } ?? binding.parametersRevision
    }

    /// Forgets the log of an app that was deleted.
    package func forget(_ app: AppSerial) { logs.forget(app) }

    /// For how long a device is asked to stay away; nil while there is no reason to.
    package var retryAfterSeconds: Int? { pace.withLock { $0.retryAfterSeconds } }

    /// Nil where it says nothing of that.
    private func report(_ report: PollReport, of binding: UpdateBinding) async throws -> ReportAnswers? {
        let place = report.receivedTo.flatMap { binding.isBehind($0) ? $0 : nil }
        guard place != nil || !report.results.isEmpty else { return nil }
        let report = try await store.report(
            report.results, receivedTo: place, of: binding.serial, at: time.now())
        for (reported, answer) in zip(report.results, report.answers) {
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

    /// Nil where another was faster.
    private func write(
        _ wanted: UpdateBinding, over before: UpdateBinding, of device: Device
    ) async throws -> UpdateBinding? {
        // What the device said that it received counts as received.
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
