import CarillonBasics
import CarillonWire
import Crypto
import Logging

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// Runs services while the client runs: offers the app's services, sends the app's requests, and handles received events.
///
/// A received event is stored before it is acknowledged, and is deleted when it is handled. A run first handles the stored events
/// of the last run. Each request is handled in a task of its own, so that a slow request does not delay others.
actor ServiceEngine {
    let runner: SessionRunner
    let app: String
    let box: ServiceBox
    let server: ServiceAPI
    let storage: ServiceStorage
    let files: ServiceFiles
    let offers: ServiceOffers
    /// The sockets of the apps on this machine; nil if the app has no directory for them.
    let local: LocalSockets?
    let localChanges = Signal()
    let router = ServiceRouter()
    let clientListeners = ServiceClientListeners()
    let providerListeners = ServiceProviderListeners()
    let clientProgress = ProgressWatchers()
    let providerProgress = ProgressWatchers()
    /// The ids of future requests.
    let requestIDs = RequestIDs()
    let logger: Logger

    var outgoing = OutgoingCalls()
    var incoming: IncomingRequests
    var results = ServiceResults()
    /// Results of requests for which no task of this process waits.
    let late = LateReplies()
    nonisolated let delegateResults = DelegateResults()
    nonisolated var suspects: SuspectTurns { runner.suspects }
    nonisolated var inbox: MessageFiles { files.inbox }
    nonisolated var health: StorageHealth { storage.health }
    private(set) var isRunning = false
    private(set) var owner: ServiceCache.Owner
    var cache: ServiceCache
    /// The providers that this device called recently.
    var providerCache = ProviderCache()
    nonisolated let providerWatchers = ProviderWatchers()
    var verifier = IdentityVerifier()

    static let eventsAtOnce = 100
    /// Requests beyond this limit are refused as too many. The server allows one device a tenth of them.
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
        cache = ServiceCache(owner: owner)
    }

    deinit {
        for task in outgoing.withdrawals.values { task.cancel() }
    }

    nonisolated static var now: Int64 { Int64((Date.now.timeIntervalSince1970 * 1000).rounded(.down)) }

    /// Requests the registration of the device if it is not registered, and waits until its user is known.
    ///
    /// - Parameter isBounded: Whether the caller limits the wait. Otherwise, or if the registration is refused, the wait ends
    ///   after half a minute.
    /// - Throws: ``ServiceError`` with ``ServiceError/Code/serverUnavailable`` after half a minute, and `CancellationError`.
    func ready(isBounded: Bool = false) async throws {
        requestRegistration()
        let begun = ContinuousClock.now
        while true {
            let scope = runner.session.updateScope
            // The data of the former user is dropped before any request of the present user.
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

    /// The errors that prevent a registration until the app or an operator corrects their cause.
    private static let refusals: Set<PushError.Code> = [.registrationRefused, .clientKeyMissing]

    private func requestRegistration() {
        // This change writes nothing to the storage, so it cannot fail.
        runner.begin({ session, _ in session.deviceRequested() }) { _ in }
    }

    /// The app and the id of this device; nil if the device is not registered.
    nonisolated var ownPeer: ServicePeer? {
        runner.session.registration.identity.map { ServicePeer(app: app, device: $0.device) }
    }

    // MARK: Running

    /// The activity for which a wake waits.
    nonisolated var activity: WakeActivity { runner.serviceActivity }

    func run() async {
        // Another run is about to end. Two runs would handle the same events.
        while isRunning {
            do { try await Task.sleep(for: .milliseconds(20)) } catch { return }
        }
        isRunning = true
        defer { isRunning = false }
        activity.began()
        await notifyKeptResults()
        await startDeadlines()
        await withTaskCancellationHandler {
            await withDiscardingTaskGroup { group in
                group.addTask { await self.files.clear() }
                group.addTask { await self.offers.run() }
                group.addTask {
                    await self.sendUnsent()
                    self.activity.ended()
                }
                group.addTask { await self.resumeWithdrawals() }
                group.addTask { await self.runProviders() }
                group.addTask { await self.runLocal() }
                group.addTask { await self.runResultRemoval() }
                group.addTask { await self.storage.run() }
                group.addTask { await self.runEvents() }
            }
        } onCancel: {
            files.stopClearing()
        }
        removeResultStarts()
        // The next run sets the timers of the stored requests.
        outgoing.cancelTimers()
    }

    // MARK: Offering

    func set(_ offer: ServiceOffering?) {
        offers.set(offer)
        if offer != nil { requestRegistration() }
    }

    /// Called when the device or its user may have changed. The storage of the former owner is deleted by now.
    nonisolated func scopeChanged() {
        offers.scopeChanged()
        localChanges.send()
        runner.providerChanges.send()
        // If the user signs out and returns, the data is dropped as well.
        let present = presentOwner
        Task { await dropDataOfOtherOwner(present) }
    }

    private func dropDataOfOtherOwner(_ present: ServiceCache.Owner) {
        // If there was another change since, its own call finds no data to drop.
        defer {
            owner = presentOwner
            runner.serviceChanges.send()
        }
        guard owner != present, owner.user != nil || owner.device != nil && present.device != owner.device else { return }
        incoming.cancelAll()
        outgoing.cancelTimers()
        files.removeAll()
        providerCache.removeAll()
        cache = ServiceCache(owner: present)
        late.removeAll()
        // Pending calls of delegates are cancelled, and iterations lose their waiting events.
        for id in results.unconfirmed.notified { delegateResults.removed(id) }
        clientListeners.ownerChanged()
        providerListeners.ownerChanged()
        for id in results.unconfirmed.started { suspects.end(.result(id)) }
        results.removeAll()
        // The callers that resume here find no state of the former user.
        endUnderWayOfOthers()
        outgoing.endPending(with: Self.userMismatch)
        clientProgress.allEnded(but: Set(outgoing.underWay.filter { isCurrent($1.owner) }.keys))
        providerProgress.allEnded()
    }
}
