import CarillonBasics
import CarillonWire
import Logging
import Synchronization

#if canImport(FoundationEssentials)
    public import FoundationEssentials
#else
    public import Foundation
#endif

/// The audience updates that this device receives and processes: ``PushClient/updates``.
///
/// Set the app's content and its user interface with ``process(content:presenter:parameters:custom:)``. From then on, while the
/// client runs and a user is signed in, the updates are polled from the server, kept in the durable storage, and processed once
/// each, and the server is notified of the results. This also happens in offline mode and during maintenance.
///
/// Processing ends when the user signs out or another profile is set, and the unfinished updates are removed from the device.
/// When the user returns, the server delivers these updates again. Two kinds of records stay on the device for each device, user
/// and profile, so that no update is processed twice: the results that the server has not accepted, and the names of finished
/// updates. Up to 10,000 of each are kept, for the eight combinations that were used last. The records contain no payload.
public final class PushUpdates: Sendable {
    /// The settings of polling, and the address of the server.
    public struct Settings: Equatable, Sendable {
        /// The way of polling while the app is in the foreground.
        public enum Polling: Equatable, Sendable {
            /// The server responds when there is an update, or after this time; up to a tenth earlier, at random.
            case long(Duration)
            /// The server responds at once, and is polled again after this time, at least a second; up to a tenth earlier or
            /// later, at random.
            case every(Duration)
        }

        /// The handling of definitions while there are uncommitted changes in manual or offline mode.
        public enum Conflicts: Equatable, Sendable {
            /// The definitions wait until the changes are committed.
            case wait
            /// The definitions fail, and are delivered again, as in UBIK.
            case fail
        }

        /// The server's host name, if it differs from the client's.
        public var server: String?
        /// The server's port, if it differs from the port of its scheme, or, without ``server``, from the client's.
        public var port: Int?
        /// The name of the service on the server: the path before `/v1`.
        public var service: String?
        /// Whether the server is polled. If this is set to false, running work ends.
        public var isActive: Bool
        /// The profile, if the app has several profiles on this device.
        public var profile: String
        /// Whether updates are polled only while a user is signed in (``PushDevice/setUser(_:)``).
        public var needsUser: Bool
        public var polling: Polling
        public var conflicts: Conflicts

        /// Makes settings with default values for the parameters that are left out.
        public init(
            server: String? = nil, port: Int? = nil, service: String? = nil, isActive: Bool = true, profile: String = "",
            needsUser: Bool = true, polling: Polling = .long(.seconds(25)), conflicts: Conflicts = .wait
        ) {
            self.server = server
            self.port = port
            self.service = service
            self.isActive = isActive
            self.profile = profile
            self.needsUser = needsUser
            self.polling = polling
            self.conflicts = conflicts
        }
    }

    /// Processes an update of the app's own kind. The handler is called again with the same update after the process was killed,
    /// and after an error, except ``ContentFault/permanent(_:)``: this error means that another attempt is of no use. If the
    /// process ended ten times while the handler ran for one update, the handler is not called again for this update:
    /// ``UpdatePresenter/crashed(_:)``.
    ///
    /// If a handler returns, the update is processed, also if the handler's task was cancelled meanwhile: the update is finished
    /// for the user who was signed in when the handler was called. A handler that was cancelled and did not finish must throw an
    /// error, such as `CancellationError`.
    public typealias CustomHandler = @Sendable (PushUpdate) async throws -> Void

    /// Returns the present parameters of the device. Leave a parameter out if the user does not permit the app to use it.
    public typealias Parameters = @Sendable () async -> [String: UpdateParameter]

    struct State {
        var settings = Settings()
        var app: UpdateWorker.App?
        var parameters: Parameters = { [:] }
        /// A number that changes with each call of ``PushUpdates/process(content:presenter:parameters:custom:)``.
        var generation = 0
        var isInForeground = true
        var worker: UpdateWorker?
        /// The revision of the parameters that the server refused, and the time of the refusal. The server may accept them later.
        var refused: (revision: String, at: ContinuousClock.Instant)?
        var isRunning = false

        mutating func beginsRun() -> Bool {
            defer { isRunning = true }
            return !isRunning
        }
    }

    private let runner: SessionRunner
    private let server: WebAddress
    let api: ServerAPI
    let inbox: UpdateInbox
    /// How long refused parameters are not sent.
    let refusedFor: Duration
    let state = Mutex(State())
    /// A signal that the server must be polled.
    let hints = Signal()

    init(
        runner: SessionRunner, server: WebAddress, api: ServerAPI, store: ClientStore,
        refusedFor: Duration = .seconds(3600)
    ) {
        self.runner = runner
        self.server = server
        self.api = api
        self.refusedFor = refusedFor
        inbox = UpdateInbox(store: store)
    }

    // MARK: Setting up

    /// Sets the app's parts that process updates. Each call starts the processing again with the new parts.
    /// - Parameters:
    ///   - content: The app's content.
    ///   - presenter: The app's user interface.
    ///   - parameters: Called before each poll. The server is notified if the parameters changed.
    ///   - custom: The handlers of the app's own kinds, by the names of the kinds, which contain a dot.
    public func process(
        content: any ContentStore, presenter: any UpdatePresenter, parameters: @escaping Parameters = { [:] },
        custom: [String: CustomHandler] = [:]
    ) {
        state.withLock { state in
            state.app = UpdateWorker.App(content: content, presenter: presenter, custom: custom)
            state.parameters = parameters
            state.generation += 1
        }
        // This change writes nothing to the storage, so it cannot fail.
        runner.begin({ session, _ in session.deviceRequested() }) { _ in }
        runner.updateChanges.send()
    }

    /// The settings. They can be changed at any time.
    public var settings: Settings {
        get { state.withLock { $0.settings } }
        set {
            state.withLock { $0.settings = newValue }
            runner.updateChanges.send()
        }
    }

    /// Whether the app is in the foreground; true by default. In the background the server is polled only by
    /// ``performBackgroundPoll(deadline:)`` and ``poll()``.
    public var isInForeground: Bool {
        get { state.withLock { $0.isInForeground } }
        set {
            state.withLock { $0.isInForeground = newValue }
            hints.send()
        }
    }

    /// Polls the server now, without waiting for the response. Call this method if there may be updates, or if parameters
    /// changed.
    public func poll() { hints.send() }

    // MARK: Running

    /// Receives and processes the updates of the present owner until the task is cancelled.
    func run() async {
        // Another run is about to end. Two runs would process the same updates.
        while !state.withLock({ $0.beginsRun() }) {
            do { try await Task.sleep(for: .milliseconds(50)) } catch { return }
        }
        defer { state.withLock { $0.isRunning = false } }
        while !Task.isCancelled {
            guard let work = await work() else {
                await runner.updateChanges.wait()
                continue
            }
            await withTaskGroup { group in
                group.addTask { await self.serve(work) }
                group.addTask {
                    while !Task.isCancelled, self.isPresent(work) { await self.runner.updateChanges.wait() }
                }
                await group.next()
                group.cancelAll()
            }
            // Work that could not begin is not repeated at once.
            if !Task.isCancelled, isPresent(work) { try? await Task.sleep(for: api.backOff.initial) }
        }
    }

    /// Polls once, processes the received updates, and returns the result for a system that runs the app in the background.
    ///
    /// Received updates are durable when the method returns. Updates that could not be processed until `deadline` are processed
    /// when the app runs again.
    public func performBackgroundPoll(deadline: Date) async -> PushWakeResult {
        await withTaskGroup(of: PushWakeResult?.self) { group in
            group.addTask {
                await self.run()
                return nil
            }
            group.addTask { await self.pollOnce() }
            group.addTask {
                try? await Task.sleep(for: .seconds(max(0, deadline.timeIntervalSinceNow)))
                return .failed
            }
            defer { group.cancelAll() }
            while let end = await group.next() { if let end { return end } }
            return .failed
        }
    }

    // MARK: Owner of the updates

    /// The owner whose updates are processed, and the present settings.
    struct Work: Equatable {
        var owner: UpdateOwner
        var credential: String
        var settings: Settings
        var generation: Int
    }

    /// Whether there is an owner whose updates are polled.
    var hasOwner: Bool { present != nil }

    private func isPresent(_ work: Work) -> Bool { present == work }

    var present: Work? {
        let scope = runner.session.updateScope
        return state.withLock { state in
            guard state.app != nil, state.settings.isActive, !scope.isUserPending, let identity = scope.identity,
                !state.settings.needsUser || scope.user != nil
            else { return nil }
            let owner = UpdateOwner(
                device: identity.device, user: scope.user ?? "", profile: state.settings.profile)
            return Work(
                owner: owner, credential: identity.credential, settings: state.settings, generation: state.generation)
        }
    }

    /// Returns the present work. The storage then belongs to its owner.
    private func work() async -> Work? {
        let work = present
        do {
            if let work {
                try await inbox.setOwner(work.owner)
            } else if hasNoOwner {
                try await inbox.setOwner(nil)
            }
            return work
        } catch {
            runner.failures.note(error)
            // If the task is cancelled, the run ends.
            try? await runner.health.wait(atMost: api.backOff.initial)
            runner.updateChanges.send()
            return nil
        }
    }

    /// Whether the device has no owner for sure: it is not registered, or no user is signed in.
    private var hasNoOwner: Bool {
        let scope = runner.session.updateScope
        return !scope.isUserPending && (scope.identity == nil || settings.needsUser && scope.user == nil)
    }

    // MARK: Serving one owner

    private func serve(_ work: Work) async {
        guard let worker = makeWorker(work) else { return }
        state.withLock { $0.worker = worker }
        let poller = poller(work)
        let content = state.withLock { $0.app?.content }
        await withDiscardingTaskGroup { group in
            group.addTask { await self.pollLoop(poller, worker, work.settings.polling) }
            group.addTask { await self.processLoop(worker) }
            group.addTask { await self.runMaintenance(worker) }
            group.addTask {
                guard let content else { return }
                for await event in await content.events() {
                    while !Task.isCancelled, await !self.storing(worker, { try await worker.happened(event) }) {}
                }
            }
            for await job in worker.jobs { group.addTask { await job() } }
            group.cancelAll()
        }
        state.withLock { if $0.worker === worker { $0.worker = nil } }
        await worker.endWork()
    }

    private func makeWorker(_ work: Work) -> UpdateWorker? {
        let app = state.withLock { $0.generation == work.generation ? $0.app : nil }
        return app.map { app in
            UpdateWorker(
                app, inbox: inbox, settings: .init(failsConflicts: work.settings.conflicts == .fail), logger: runner.logger,
                suspects: runner.suspects
            ) { [hints] in hints.send() }
        }
    }

    func poller(_ work: Work) -> UpdatePoller {
        let custom = state.withLock { $0.app?.custom.keys.map { $0 } ?? [] }
        return UpdatePoller(
            owner: work.owner, credential: work.credential, api: api.at(work.settings.base(on: server)),
            kinds: ["content", "definitions", "status", "popup"] + custom, inbox: inbox)
    }

    private func processLoop(_ worker: UpdateWorker) async {
        while !Task.isCancelled {
            await storing(worker) { try await worker.processAll() }
            await worker.arrivals.wait()
        }
    }

    private func runMaintenance(_ worker: UpdateWorker) async {
        while !Task.isCancelled {
            var left: Double?
            let isDone = await storing(worker) {
                left = nil
                if let next = try await worker.advanceMaintenance() { left = try await worker.seconds(until: next) }
            }
            guard isDone else { continue }
            guard let left else {
                await worker.maintenanceChanges.wait()
                continue
            }
            // The device's clock can be set forward meanwhile, if the server's time is not known.
            let wait = min(max(0, left), 60)
            await withTaskGroup { group in
                group.addTask { try? await Task.sleep(for: .seconds(wait + 0.001)) }
                group.addTask { await worker.maintenanceChanges.wait() }
                await group.next()
                group.cancelAll()
            }
        }
    }

    /// Runs work with the storage or the app. A failure is reported, and the caller can repeat the work after a wait. Returns
    /// whether the work succeeded.
    @discardableResult
    func storing(_ worker: UpdateWorker, _ body: () async throws -> Void) async -> Bool {
        do {
            try await body()
            return true
        } catch {
            if Task.isCancelled { return false }
            let message = (error as? PushError)?.message ?? "\(type(of: error))"
            await worker.failed(UpdateFailure(error is PushError ? .storage : .processing, message))
            try? await Task.sleep(for: api.backOff.initial)
            worker.arrivals.send()
            return false
        }
    }
}

extension PushUpdates.Settings {
    /// Returns the base address of the service.
    fileprivate func base(on address: WebAddress) -> String {
        var base = address.text
        while base.hasSuffix("/") { base.removeLast() }
        if server != nil || port != nil {
            let host = server ?? address.host
            let bracketed = host.contains(":") && !host.hasPrefix("[") ? "[\(host)]" : host
            let path = server == nil && address.target != "/" ? address.target : ""
            base = (address.isSecure ? "https://" : "http://") + bracketed + (port.map { ":\($0)" } ?? "") + path
            while base.hasSuffix("/") { base.removeLast() }
        }
        let name = (service ?? "").split(separator: "/").joined(separator: "/")
        return name.isEmpty ? base : base + "/" + name
    }
}
