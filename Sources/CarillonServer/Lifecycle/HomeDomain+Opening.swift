package import CarillonCore
import CarillonWire
package import Logging

extension HomeDomain {
    /// The purpose for which a process uses a store.
    package enum Purpose: Sendable {
        /// The home of all devices. Earlier homes on the store write nothing from then on.
        case server
        /// An operator's command on the store of a server that does not run. Homes and the map of shards stay as they are.
        case command
    }

    /// Makes the only home of a process over a store, and everything that the process has once.
    ///
    /// - Parameters:
    ///   - positionsUsed: The last sequence of the claimed epoch that the home does not use; 0 if it uses the whole epoch.
    ///   - link: Returns how connections reach the home. Without it, they call the home itself.
    package convenience init(
        store: any Store, addresses: OwnAddresses, scheduler: Scheduler, logger: Logger,
        watchSettings: WatchRegistrar.Settings = .init(), workLimits: WorkPace.Limits = .init(),
        allowances: Allowances.Settings = .init(), gatewaySettings: GatewaySettings = .init(),
        userKeys: UserKeySource = .none, vetoSource: VetoSource = .none, itemLimits: ItemEngine.Limits = .init(),
        updateLimits: UpdateLimits = .init(), turnLimits: SharedTurns.Limits = .init(),
        attachmentFiles: any AttachmentFiles = NoAttachmentFiles(), attachmentLimits: AttachmentLimits = .init(),
        answerBytes: Int = AnswerMemory.standardBytes, wrappedBy wrapping: WrappingKey? = nil,
        for purpose: Purpose = .server,
        time: TimeSource = .system, ticks: TickSource = .system, positionsUsed: Int64 = 0,
        link: (any Home) -> any Home = { $0 }
    ) async throws {
        let random = RandomSource.system
        let log = BoundedLog.of(logger, ticks: ticks)
        var generator = random
        // The key ring is opened before the incarnation is added: a server with a wrong key file must not stop another one. Listeners bind
        // their addresses later, in their services: a server whose address is in use stops after it became the home.
        let tokenKeys = try await KeyRing.open(store, wrappedBy: wrapping, random)
        let server = try await store.serverID(proposing: ServerID(.random(using: &generator)))
        let served = try await ServedTime(store: store, time: time, ticks: ticks)
        let (home, epoch) = try await HomeDomain.begin(purpose, on: store)
        let history = try await store.history(proposing: Int64(bitPattern: random.next()))
        let sessions = LiveSessions()
        let writer = InboxWriter(store: home, sessions: sessions, scheduler: scheduler, logger: log.logger)
        let inbox = Inbox(
            store: home, writer: writer, sessions: sessions,
            positions: PositionSource(epoch: epoch, after: positionsUsed), time: time, random: random)
        let runtime = HomeRuntime(inbox: inbox, sessions: sessions, store: home)
        let shared = Domain(
            store: store, documents: AppDocuments(store: store), tokenKeys: tokenKeys, isKeyRingWrapped: wrapping != nil,
            homes: Homes(only: runtime, reachedBy: link(runtime)), server: server, history: history, served: served,
            addresses: addresses, callRules: watchSettings.rules, allowances: allowances, gatewaySettings: gatewaySettings,
            userKeys: userKeys, vetoSource: vetoSource, turnLimits: turnLimits, answerBytes: answerBytes,
            scheduler: scheduler, log: log, time: time, ticks: ticks, random: random)
        self.init(
            shared, runtime: runtime, records: store, attachmentFiles: attachmentFiles,
            settings: Settings(
                watches: watchSettings, work: workLimits, items: itemLimits, updates: updateLimits,
                attachments: attachmentLimits, outbox: .init(underWay: gatewaySettings.underWay)))
    }

    /// Returns the handle for everything that works for devices, and the epoch of positions.
    private static func begin(_ purpose: Purpose, on store: any Store) async throws -> (home: any HomeStore, epoch: Int64) {
        switch purpose {
        case .server:
            let home = try await store.home(store.addIncarnation(of: .only))
            let epoch = try await store.claimEpoch()
            try await ShardMap.take(.all, to: .init(node: .only, epoch: epoch), by: home, in: store)
            return (home, epoch)
        case .command:
            // A suspended or resumed device gets a message, whose position must be later than all stored positions. Each
            // command claims an epoch, because positions are assigned where no code can wait for the store. There are 16
            // million epochs.
            return (store, try await store.claimEpoch())
        }
    }
}
