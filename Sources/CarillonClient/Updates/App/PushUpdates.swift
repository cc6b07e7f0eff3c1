import CarillonBasics
import CarillonWire
import Logging
import Synchronization

#if canImport(FoundationEssentials)
    public import FoundationEssentials
#else
    public import Foundation
#endif

/// Updates that backends publish for an audience, as this device receives and processes them: ``PushClient/updates``.
///
/// Give it the app's content and its user interface with ``process(content:presenter:parameters:custom:)``. From then on, while the client
/// runs and a user is signed in, it polls the server, keeps what comes in the durable storage, processes each update once, and notifies the
/// server what became of it. It does so in offline mode and during a maintenance as well.
///
/// It ends when the user signs out or another profile is chosen, and the updates that were not finished are removed from the device. When the
/// user returns, the server gives them again. Results that the server has not taken, and the names of finished updates, stay on the device for
/// each device, user and profile, so that nothing is done twice: up to 10,000 of each, for the eight that were used last. They hold no payload.
public final class PushUpdates: Sendable {
    /// How the server is asked, and where it is.
    public struct Settings: Equatable, Sendable {
        /// How it is asked while the app is in the foreground.
        public enum Polling: Equatable, Sendable {
            /// The server answers when there is something, or after so long; a tenth less by chance.
            case long(Duration)
            /// The server answers at once, and is asked again after so long, a second at the least; a tenth more or less by chance.
            case every(Duration)
        }

        /// What becomes of definitions while there are uncommitted changes in manual or offline mode.
        public enum Conflicts: Equatable, Sendable {
            /// They wait until the changes are committed.
            case wait
            /// They fail, and come again, as UBIK has it.
            case fail
        }

        /// The server's name, where it is another than the client's.
        public var server: String?
        /// Its port, where it is another than that of its scheme or, without ``server``, than the client's.
        public var port: Int?
        /// The name of the service on it: the path before `/v1`.
        public var service: String?
        /// Whether updates are asked for. Switching it off ends what is under way.
        public var isActive: Bool
        /// Which of several profiles on this device.
        public var profile: String
        /// Whether there are updates only while a user is signed in (``PushDevice/setUser(_:)``).
        public var needsUser: Bool
        public var polling: Polling
        public var conflicts: Conflicts

        /// Makes settings; what is not given has its default.
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

    /// Processes an update of a kind of the app's own. It is called again with the same update after a kill, and when it threw:
    /// ``ContentFault/permanent(_:)`` says that it is of no use. After the process ended ten times while it ran for one update, it is not called
    /// again for it: ``UpdatePresenter/crashed(_:)``.
    ///
    /// A handler that returns has processed the update, also if its task was cancelled meanwhile: the update is finished for the user who was
    /// signed in when the handler was called. A handler that was cancelled and did not finish must throw, for instance `CancellationError`.
    public typealias CustomHandler = @Sendable (PushUpdate) async throws -> Void

    /// Answers what the device says of itself now. What the user does not let the app know is left out.
    public typealias Parameters = @Sendable () async -> [String: UpdateParameter]

    struct State {
        var settings = Settings()
        var app: UpdateWorker.App?
        var parameters: Parameters = { [:] }
        /// Another with each app.
        var generation = 0
        var isInForeground = true
        var worker: UpdateWorker?
        /// The parameters that the server did not take, and when. It may declare them later.
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
    /// For how long parameters are withheld that the server did not take.
    let refusedFor: Duration
    let state = Mutex(State())
    /// Says that it is time to poll.
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

    // MARK: Saying

    /// Says what updates are processed with. With another, processing begins anew.
    /// - Parameters:
    ///   - content: The app's content.
    ///   - presenter: Its user interface.
    ///   - parameters: Asked before each poll; the server is notified when they changed.
    ///   - custom: By the names of kinds: the app's own have a dot.
    public func process(
        content: any ContentStore, presenter: any UpdatePresenter, parameters: @escaping Parameters = { [:] },
        custom: [String: CustomHandler] = [:]
    ) {
        state.withLock { state in
            state.app = UpdateWorker.App(content: content, presenter: presenter, custom: custom)
            state.parameters = parameters
            state.generation += 1
        }
        // Nothing is written, so that nothing can fail.
        runner.begin({ session, _ in session.deviceWanted() }) { _ in }
        runner.updateChanges.send()
    }

    /// The settings, which can be changed at any time.
    public var settings: Settings {
        get { state.withLock { $0.settings } }
        set {
            state.withLock { $0.settings = newValue }
            runner.updateChanges.send()
        }
    }

    /// Whether the app is in the foreground, as it is unless it is said. In the background nothing is asked but by
    /// ``performBackgroundPoll(deadline:)`` and ``poll()``.
    public var isInForeground: Bool {
        get { state.withLock { $0.isInForeground } }
        set {
            state.withLock { $0.isInForeground = newValue }
            hints.send()
        }
    }

    /// Asks the server now, and does not wait for the answer: something said that there may be updates, or parameters changed.
    public func poll() { hints.send() }

    // MARK: Running

    /// Receives and processes updates, whoever they are for, until its task is cancelled.
    func run() async {
        // Another run is just ending: two would process the same.
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
            // One that could not begin is not begun again at once.
            if !Task.isCancelled, isPresent(work) { try? await Task.sleep(for: api.backOff.initial) }
        }
    }

    /// Asks once, processes what came, and says what became of it, as a system that lets the app run in the background wants to know it.
    ///
    /// What came is durable when this returns; what could not be processed until `deadline` is when the app runs again.
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

    // MARK: Whose updates

    /// Updates are for somebody, and the app is there.
    struct Work: Equatable {
        var owner: UpdateOwner
        var credential: String
        var settings: Settings
        var generation: Int
    }

    /// Whether there is somebody to poll for.
    var isWanted: Bool { present != nil }

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

    /// What is to be done now; the storage is its owner's then.
    private func work() async -> Work? {
        let work = present
        do {
            if let work {
                try await inbox.belong(to: work.owner)
            } else if isNobodys {
                try await inbox.belong(to: nil)
            }
            return work
        } catch {
            runner.failures.note(error)
            // Cancelled: the run ends.
            try? await runner.health.wait(atMost: api.backOff.initial)
            runner.updateChanges.send()
            return nil
        }
    }

    /// Whether it is known that the device is no user's, or that it is no device.
    private var isNobodys: Bool {
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
            group.addTask { await self.tendMaintenance(worker) }
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
        await worker.left()
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

    private func tendMaintenance(_ worker: UpdateWorker) async {
        while !Task.isCancelled {
            var left: Double?
            let isDone = await storing(worker) {
                left = nil
                if let next = try await worker.tendMaintenance() { left = try await worker.seconds(until: next) }
            }
            guard isDone else { continue }
            guard let left else {
                await worker.maintenanceChanges.wait()
                continue
            }
            // The clock may be put forward meanwhile, where nothing is known of the server's.
            let wait = min(max(0, left), 60)
            await withTaskGroup { group in
                group.addTask { try? await Task.sleep(for: .seconds(wait + 0.001)) }
                group.addTask { await worker.maintenanceChanges.wait() }
                await group.next()
                group.cancelAll()
            }
        }
    }

    /// What fails is reported, and tried again after a while. Returns false for work that its caller does again.
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
    /// Where the service is.
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
