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
    let files: AttachmentStore
    let inbox: MessageFiles
    /// Of this machine; nil where the app has no directory for it.
    let local: LocalSockets?
    let localChanges = Signal()
    /// The deadlines of requests that went to apps of this machine.
    var localTimes: [String: Task<Void, any Error>] = [:]
    let router = ServiceRouter()
    let clientListeners = ServiceClientListeners()
    let providerListeners = ServiceProviderListeners()
    let clientProgress = ProgressWatchers()
    let providerProgress = ProgressWatchers()
    /// The ids of requests to come.
    let requestIDs = RequestIDs()
    let logger: Logger

    /// What the app offers; nil: nothing.
    private var offer: ServiceOffering?
    /// The offer that was sent to the server last in this run.
    private var said: SaidOffer?
    private let offerChanges = Signal()
    /// The requests of which the server hears that nobody wants them, by id.
    var takingBack: [String: Task<Void, Never>] = [:]
    /// How many groups of uploads are being given up.
    var takingAway = 0
    /// Those who wait for a result.
    var pending: [String: PendingResult<ServiceReply>] = [:]
    /// The requests that are on their way to the server, by id.
    var underWay: [String: CallUnderWay] = [:]
    /// Results of requests that nobody in this process waits for.
    let late = LateReplies()
    var unconfirmed = UnconfirmedResults()
    nonisolated let heard = HeardResults()
    /// The results that the app receives if the server refuses the user that the app named, by the id of their request.
    var heldBack: [String: ResultAudience] = [:]
    /// The errors of requests whose result could not be stored, until the app confirms them. There is one for a request at most.
    var unstoredResults: [KeptResult] = []
    /// The requests whose end is being stored.
    var ending: Set<String> = []
    /// The calls that wait for the storage, or whose reply does.
    var keptByStorage: Set<String> = []
    /// Changes that could not be stored, in their order.
    var unstored: [(name: String, change: @Sendable () async throws -> Void)] = []
    let unstoredChanges = Signal()
    /// The requests that are worked on, by id.
    var requests: [String: RequestWork] = [:]
    nonisolated var suspects: SuspectTurns { runner.suspects }

    private struct SaidOffer {
        var offer: ServiceOffering?
        var device: String
        var user: String?
        var key: String
        /// The name that the server has it by; nil where it was not taken, or the server remembers no names.
        var revision: String?
        /// The server does not have it any more.
        var isLost = false
    }

    /// The recipients of a result.
    enum ResultAudience {
        case all
        /// Readers of late replies received the result in this run, or can receive it.
        case delegates
    }

    struct RequestWork {
        var number: Int64
        var isUnwanted: Bool
        var isOneTooMany: Bool
        /// All of it is here.
        var hasArrived = false
        /// Its handler may be called once.
        var isOnce = false
        /// The storage keeps it from being answered.
        var isKeptByStorage = false
        var handler: Task<ServiceReply, any Error>?
        /// The starts of its handler that ended with the process.
        var starts = 0
        /// Leaves the files of its reply with the server.
        var leaving: Task<Left, any Error>?
    }
    private(set) var isRunning = false
    var lastTime: Int64 = 0
    private(set) var owner: ServiceMemory.Owner
    var memory: ServiceMemory
    /// Clears away what an earlier run left half done; once.
    var clearing: Task<Void, Never>?
    /// Those that this device asked a moment ago.
    var known = KnownProviders()
    nonisolated let providerWatchers = ProviderWatchers()
    nonisolated let removals = ServerRemovals()
    var verifier: (@Sendable (ServiceApplication, String, Bool) async -> Bool)?
    /// The questions that the verifier answers now.
    var identityQuestions: [IdentityQuestion: Task<Bool, Never>] = [:]

    static let eventsAtOnce = 100
    /// Beyond them requests are answered that there are too many. The server lets one device have a tenth of them.
    static let mostRequests = 10_000
    private let mostRequests: Int

    init(
        runner: SessionRunner, app: String, box: ServiceBox, server: ServiceAPI, files: AttachmentStore,
        inbox: MessageFiles, local: LocalSockets? = nil, logger: Logger, mostRequests: Int = ServiceEngine.mostRequests
    ) {
        self.runner = runner
        self.app = app
        self.box = box
        self.server = server
        self.files = files
        self.inbox = inbox
        self.local = local
        self.logger = logger
        self.mostRequests = mostRequests
        let scope = runner.updateScope
        owner = .init(device: scope.identity?.device, user: scope.user)
        memory = ServiceMemory(owner: owner)
    }

    deinit {
        for task in takingBack.values { task.cancel() }
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
            let scope = runner.updateScope
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
    nonisolated var ownPeer: ServicePeer? { runner.identity.map { ServicePeer(app: app, device: $0.device) } }

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
        await tellKeptResults()
        await keepTimes()
        await withTaskCancellationHandler {
            await withDiscardingTaskGroup { group in
                group.addTask { await self.clear() }
                group.addTask { await self.runOffers() }
                group.addTask {
                    await self.sendUnsent()
                    self.activity.ended()
                }
                group.addTask { await self.takeBackAgain() }
                group.addTask { await self.runProviders() }
                group.addTask { await self.runLocal() }
                group.addTask { await self.runResultRemoval() }
                group.addTask { await self.runUnstored() }
                group.addTask { await self.runEvents() }
            }
        } onCancel: {
            // Ends at once.
            Task { await self.stopClearing() }
        }
        takeBackResultStarts()
        // The next run keeps the times of what is stored.
        for time in localTimes.values { time.cancel() }
        localTimes = [:]
    }

    private func runEvents() async {
        var place: Int64 = 0
        await withDiscardingTaskGroup { group in
            while !Task.isCancelled {
                // The app named another user: what is stored is not told to that user.
                guard !isBetweenUsers else {
                    await runner.serviceChanges.wait()
                    continue
                }
                await tellHeldBackResults()
                do {
                    let arrivals = activity.arrivals
                    let (events, repeated, last) = try await storing {
                        try await box.events(after: place, at: Self.now, limit: Self.eventsAtOnce)
                    }
                    if repeated > 0 {
                        logger.warning("received requests again", metadata: ["count": "\(repeated)"])
                    }
                    for event in events {
                        activity.began()
                        if await takeShort(event) {
                            activity.ended(isEvent: true)
                            continue
                        }
                        group.addTask {
                            await self.take(event)
                            self.activity.ended(isEvent: true)
                        }
                    }
                    if let last {
                        place = last
                        continue
                    }
                    activity.read(upTo: arrivals)
                } catch {
                    if Task.isCancelled { break }
                    logger.error("cannot read received requests", metadata: ["reason": "\(error)"])
                }
                await runner.serviceChanges.wait()
            }
            group.cancelAll()
        }
    }

    /// What is done at once, in its order. Answers false for what takes its time.
    private func takeShort(_ stored: StoredServiceEvent) async -> Bool {
        switch stored.event {
        // The end of a request can wait for the storage.
        case .reply, .failed: return false
        case .request(let header, _, _, _):
            requests[header.id.description] = RequestWork(
                number: stored.number, isUnwanted: stored.isUnwanted, isOneTooMany: requests.count >= mostRequests,
                starts: stored.starts)
            return false
        case .cancelled(let id):
            await cancelled(id.description)
            await forget(stored)
        case .received(let id):
            await tellReceived(id.description, stored.number)
        }
        return true
    }

    private func take(_ stored: StoredServiceEvent) async {
        switch stored.event {
        case .request(let header, let from, let expiresAt, let content):
            await takeRequest(stored, header, from, expiresAt, content)
        case .reply(let id, let from, let content): await takeReply(stored, id.description, from, content)
        case .failed(let id, let code):
            await finish(id.description, .failure(ServiceError(.init(code), "The server ended the request.")), stored)
        case .cancelled, .received: break
        }
    }

    func forget(_ stored: StoredServiceEvent) async {
        await change("forget event") { [box] in try await box.done(stored.number) }
    }

    // MARK: Offering

    func set(_ offer: ServiceOffering?) {
        self.offer = offer
        if offer != nil { want() }
        offerChanges.send()
    }

    /// Who the device is, or whose, may be another. What the storage had of the one before is gone by now.
    nonisolated func scopeChanged() {
        offerChanges.send()
        localChanges.send()
        runner.providerChanges.send()
        // Whoever goes and comes back has gone, too.
        let present = presentOwner
        Task { await dropWhatWasAnothers(present) }
    }

    private func dropWhatWasAnothers(_ present: ServiceMemory.Owner) {
        // Another change may have come since; its own call finds that nothing is left to drop.
        defer {
            owner = presentOwner
            runner.serviceChanges.send()
        }
        guard owner != present, owner.user != nil || owner.device != nil && present.device != owner.device else { return }
        for work in requests.values {
            work.handler?.cancel()
            work.leaving?.cancel()
        }
        requests = [:]
        for time in localTimes.values { time.cancel() }
        localTimes = [:]
        inbox.removeAll()
        clearing = nil
        known.removeAll()
        memory = ServiceMemory(owner: present)
        late.removeAll()
        // A delegate that is about to be called is not called any more, and iterations lose the events that wait for them.
        for id in unconfirmed.told { heard.removed(id) }
        clientListeners.ownerChanged()
        providerListeners.ownerChanged()
        for id in unconfirmed.started { suspects.end(.result(id)) }
        unconfirmed = UnconfirmedResults()
        heldBack = [:]
        unstoredResults = []
        // The callers that are resumed here find no state of the former user.
        endUnderWayOfOthers()
        for waiting in pending.values { waiting.resume(.failure(Self.userMismatch)) }
        clientProgress.allEnded(but: Set(underWay.filter { isCurrent($1.owner) }.keys))
        providerProgress.allEnded()
        pending = [:]
    }

    /// Says what the app offers, after each change of it, of who the device is, and of its key.
    private func runOffers() async {
        // Each run says it once.
        said = nil
        var schedule = ClientReconnectSchedule(server.api.backOff)
        while !Task.isCancelled {
            let scope = runner.updateScope
            guard let device = scope.identity?.device, !scope.isUserPending,
                offer != nil || said?.offer != nil || said?.isLost == true
            else {
                await offerChanges.wait()
                continue
            }
            do {
                let keys = try await box.keys(at: Self.now)
                let present = offer
                if let said, said.offer == present, said.device == device, said.user == scope.user,
                    said.key == keys.key.name, !said.isLost
                {
                    await wait(until: keys.key.validUntil)
                    continue
                }
                let answer: ServiceAPI.Answer
                var saying = SaidOffer(offer: present, device: device, user: scope.user, key: keys.key.name)
                // What is lost while it is said is said again.
                said?.isLost = false
                if let present {
                    let (body, revision) = present.body(
                        keys: try keys.bundle(of: device), isNamed: runner.namesRevisions)
                    saying.revision = revision
                    answer = await server.ask(.put, "/v1/device/services", body)
                } else {
                    answer = await server.ask(.delete, "/v1/device/services")
                }
                switch answer {
                case .done:
                    saying.isLost = said?.isLost ?? false
                    said = saying
                    schedule.succeeded()
                    continue
                case .refused(let error):
                    logger.error("server refused offered services", metadata: ["reason": "\(error)"])
                    if present != nil { providerListeners.tell([.offerRefused(error)]) }
                    saying.revision = nil
                    said = saying
                    continue
                case .later(let hint): try await server.api.wait(&schedule, hint: hint)
                }
            } catch is CancellationError {
                return
            } catch {
                logger.error("cannot read keys of services; retrying", metadata: ["reason": "\(error)"])
                // Cancelled: the loop ends.
                try? await health.wait(atMost: schedule.storageFailed())
            }
        }
    }

    /// The server says at the beginning of a connection under which name it has what the app offers.
    nonisolated func serverHas(_ revision: String?, isRestored: Bool) {
        Task { await compare(with: revision, isRestored: isRestored) }
    }

    private func compare(with revision: String?, isRestored: Bool) {
        guard let said else { return }
        // What was withdrawn is there again, or what was offered is not.
        let isOther = said.offer == nil ? revision != nil : said.revision != nil && said.revision != revision
        guard isOther || isRestored && said.offer != nil else { return }
        self.said?.isLost = true
        offerChanges.send()
    }

    private func wait(until moment: Int64) async {
        let timer = Task { [offerChanges] in
            try await Task.sleep(for: .milliseconds(max(1000, moment - Self.now)))
            offerChanges.send()
        }
        await offerChanges.wait()
        timer.cancel()
    }
}
