import CarillonBasics
import CarillonWire
import Crypto
import Logging

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// Runs services while the client runs: offers what the app provides, sends what it asks, and works through what came.
///
/// What came is stored before the server hears of it, and is deleted when it is done; a run begins with what the last one left. A request is
/// handled in a task of its own, so that a slow one holds up nobody.
actor ServiceEngine {
    let runner: SessionRunner
    let app: String
    let box: ServiceBox
    let server: ServiceAPI
    let storage: ServiceStorage
    let files: ServiceFiles
    let offers: ServiceOffers
    /// Of this machine; nil where the app has no directory for it.
    let local: LocalSockets?
    let localChanges = Signal()
    let router = ServiceRouter()
    let clientListeners = ServiceClientListeners()
    let providerListeners = ServiceProviderListeners()
    let clientProgress = ProgressWatchers()
    let providerProgress = ProgressWatchers()
    /// The ids of requests to come.
    let requestIDs = RequestIDs()
    let logger: Logger

    var outgoing = OutgoingCalls()
    var incoming: IncomingRequests
    var results = ServiceResults()
    /// Results of requests that nobody in this process waits for.
    let late = LateReplies()
    nonisolated let delegateResults = DelegateResults()
    nonisolated var suspects: SuspectTurns { runner.suspects }
    nonisolated var inbox: MessageFiles { files.inbox }
    nonisolated var health: StorageHealth { storage.health }
    private(set) var isRunning = false
    private(set) var owner: ServiceMemory.Owner
    var memory: ServiceMemory
    /// Those that this device asked a moment ago.
    var known = ProviderCache()
    nonisolated let providerWatchers = ProviderWatchers()
    var verifier = IdentityVerifier()

    static let eventsAtOnce = 100
    /// Beyond them requests are answered that there are too many. The server lets one device have a tenth of them.
    static let mostRequests = 10_000

    init(
        runner: SessionRunner, app: String, box: ServiceBox, server: ServiceAPI, files: AttachmentStore,
        inbox: MessageFiles, local: LocalSockets? = nil, logger: Logger, mostRequests: Int = ServiceEngine.mostRequests
    ) {
        self.runner = runner
        self.app = app
        self.box = box
        self.server = server
        storage = ServiceStorage(box: box, backOff: server.api.backOff, logger: logger)
        self.files = ServiceFiles(
            attachments: files, inbox: inbox, storage: storage,
            removals: ServerRemovals(server: server, logger: logger), logger: logger)
        offers = ServiceOffers(
            runner: runner, box: box, server: server, listeners: providerListeners, logger: logger)
        self.local = local
        self.logger = logger
        incoming = IncomingRequests(limit: mostRequests)
        let scope = runner.session.updateScope
        owner = .init(device: scope.identity?.device, user: scope.user)
        memory = ServiceMemory(owner: owner)
    }

    deinit {
        for task in outgoing.takingBack.values { task.cancel() }
    }

    nonisolated static var now: Int64 { Int64((Date.now.timeIntervalSince1970 * 1000).rounded(.down)) }

    /// Has the device registered where it is not, and waits until it is known whose it is.
    ///
    /// - Parameter isBounded: Whether the caller ends the wait. A wait that nobody ends, or whose registration is refused, ends by itself.
    /// - Throws: ``ServiceError`` with ``ServiceError/Code/serverUnavailable`` when that takes half a minute, and `CancellationError`.
    func ready(isBounded: Bool = false) async throws {
        want()
        let begun = ContinuousClock.now
        while true {
            let scope = runner.session.updateScope
            // What belonged to the former user is dropped before anything is done for the present one.
            if scope.identity != nil, !scope.isUserPending, owner == presentOwner { return }
            let failure = runner.failures.last
            let isRefused = failure.map { Self.refusals.contains($0.code) } ?? false
            guard begun.duration(to: .now) < .seconds(30) || isBounded && !isRefused else {
                throw ServiceError(
                    .serverUnavailable, failure?.message ?? "The device could not be registered in time.")
            }
            try await Task.sleep(for: .milliseconds(20))
        }
    }

    /// What keeps a device from being registered until somebody mends it.
    private static let refusals: Set<PushError.Code> = [.registrationRefused, .clientKeyMissing]

    private func want() {
        // Nothing is written, so that nothing can fail.
        runner.begin({ session, _ in session.deviceWanted() }) { _ in }
    }

    /// Who this device is to others; nil: it is not registered.
    nonisolated var ownPeer: ServicePeer? {
        runner.session.registration.identity.map { ServicePeer(app: app, device: $0.device) }
    }

    // MARK: Running

    /// What a wake waits for.
    nonisolated var activity: WakeActivity { runner.serviceActivity }

    func run() async {
        // Another run is just ending: two would handle the same.
        while isRunning {
            do { try await Task.sleep(for: .milliseconds(20)) } catch { return }
        }
        isRunning = true
        defer { isRunning = false }
        activity.began()
        await notifyKeptResults()
        await keepTimes()
        await withTaskCancellationHandler {
            await withDiscardingTaskGroup { group in
                group.addTask { await self.files.clear() }
                group.addTask { await self.offers.run() }
                group.addTask {
                    await self.sendUnsent()
                    self.activity.ended()
                }
                group.addTask { await self.takeBackAgain() }
                group.addTask { await self.runProviders() }
                group.addTask { await self.runLocal() }
                group.addTask { await self.runResultRemoval() }
                group.addTask { await self.storage.run() }
                group.addTask { await self.runEvents() }
            }
        } onCancel: {
            files.stopClearing()
        }
        takeBackResultStarts()
        // The next run keeps the times of what is stored.
        outgoing.cancelTimers()
    }

    // MARK: Offering

    func set(_ offer: ServiceOffering?) {
        offers.set(offer)
        if offer != nil { want() }
    }

    /// Who the device is, or whose, may be another. What the storage had of the one before is gone by now.
    nonisolated func scopeChanged() {
        offers.scopeChanged()
        localChanges.send()
        runner.providerChanges.send()
        // Whoever goes and comes back has gone, too.
        let present = presentOwner
        Task { await dropDataOfOtherOwner(present) }
    }

    private func dropDataOfOtherOwner(_ present: ServiceMemory.Owner) {
        // Another change may have come since; its own call finds that nothing is left to drop.
        defer {
            owner = presentOwner
            runner.serviceChanges.send()
        }
        guard owner != present, owner.user != nil || owner.device != nil && present.device != owner.device else { return }
        incoming.cancelAll()
        outgoing.cancelTimers()
        files.removeAll()
        known.removeAll()
        memory = ServiceMemory(owner: present)
        late.removeAll()
        // A delegate that is about to be called is not called any more, and iterations lose the events that wait for them.
        for id in results.unconfirmed.notified { delegateResults.removed(id) }
        clientListeners.ownerChanged()
        providerListeners.ownerChanged()
        for id in results.unconfirmed.started { suspects.end(.result(id)) }
        results.removeAll()
        // The callers that are resumed here find no state of the former user.
        endUnderWayOfOthers()
        outgoing.endPending(with: Self.userMismatch)
        clientProgress.allEnded(but: Set(outgoing.underWay.filter { isCurrent($1.owner) }.keys))
        providerProgress.allEnded()
    }
}
