import CarillonCore
import CarillonExpression
import CarillonWire
import Foundation
import HTTPTypes
import Logging
import Synchronization
import TestStores
import TestSupport
import Testing

@testable import CarillonServer

/// The regular work of a running server. Subscriptions that never fired have tests of their own (``NeverFiredTests``).
@Suite(.timeLimit(.minutes(5)))
struct SweeperTests {
    enum Work: String, CaseIterable {
        case withheldLogLines, servedTime, seenDevices, inactiveDevices, suspendedDevices, anonymousDevices, deletedApps
        case expiredMessages, statuses, expiredSubscriptions, endedSubscriptions, channelsOfFormerUsers, expiredPushes
        case keptPushes, attachments, files, requests, firings, throttledFirings, locations, expiredUpdates, endedUpdates
        case wakingUpdates

        /// The name of the step as its sweeper reports its faults; nil where it has none.
        var step: String? {
            switch self {
            case .withheldLogLines: nil
            case .servedTime: "served time"
            case .seenDevices, .inactiveDevices, .suspendedDevices, .anonymousDevices: "devices"
            case .deletedApps: "deletions"
            case .expiredMessages: "time"
            case .statuses: "statuses"
            case .expiredSubscriptions: "expired subscriptions"
            case .endedSubscriptions: "subscriptions"
            case .channelsOfFormerUsers: "channels of former users"
            case .expiredPushes, .keptPushes: "pushes"
            case .attachments: "attachments"
            case .files: "files of attachments"
            case .requests: "requests of services"
            case .firings: "firings"
            case .throttledFirings: "throttled firings"
            case .locations: "updates"
            case .expiredUpdates: "expired updates"
            case .endedUpdates: "ended updates"
            case .wakingUpdates: "waking for updates"
            }
        }
    }

    private final class Clocks: Sendable {
        // Files that are made now are older than that.
        private let moments = Mutex((wall: TimeSource.system.now().adding(seconds: 3600), ticks: Int64(9)))
        var now: Timestamp { moments.withLock { $0.wall } }
        var time: TimeSource { TimeSource { self.now } }
        var ticks: TickSource { TickSource { self.moments.withLock { $0.ticks } } }

        func pass(_ seconds: Int64) {
            moments.withLock { $0 = ($0.wall.adding(seconds: seconds), $0.ticks + seconds * 1_000_000_000) }
        }
    }

    private typealias Check = @Sendable () async throws -> Bool

    private struct World {
        static let day: Int64 = 86_400

        let clocks = Clocks()
        let catcher = LogCatcher()
        let directory = TemporaryDirectory()
        let routes: RouteFixture
        let device: Device
        let credential: String
        let app: AppID

        var store: any Store { routes.store }
        var domain: HomeDomain { routes.domain }

        init() async throws {
            routes = try await RouteFixture(
                attachmentFiles: stores.factory.attachmentFiles(of: directory.path), time: clocks.time, ticks: clocks.ticks,
                logger: catcher.logger)
            let registered = try await routes.device()
            credential = registered.credential
            let id = try #require(DeviceID(registered.id))
            device = try #require(try await routes.store.device(id))
            app = try #require(AppID("com.example.app"))
        }

        /// Sweeps until the task is cancelled.
        func sweep() -> Task<Void, any Error> {
            let sweepers = Sweepers(of: domain, store: store)
            return Task { try await sweepers.run() }
        }

        /// Prepares some work, and returns whether it was done.
        func prepare(_ work: Work) async throws -> Check {
            switch work {
            case .withheldLogLines, .servedTime: time(work)
            case .seenDevices, .inactiveDevices, .suspendedDevices, .anonymousDevices, .statuses: try await devices(work)
            case .deletedApps, .expiredMessages, .channelsOfFormerUsers: try await channels(work)
            case .expiredSubscriptions, .endedSubscriptions, .firings, .throttledFirings: try await subscriptions(work)
            case .expiredPushes, .keptPushes, .requests: try await rows(work)
            case .attachments, .files: try await attachments(work)
            case .expiredUpdates, .endedUpdates, .wakingUpdates: try await updates(work)
            case .locations: try await location()
            }
        }

        private func time(_ work: Work) -> Check {
            guard work == .withheldLogLines else {
                clocks.pass(120)
                return { [store] in try await store.servedSeconds() >= 60 }
            }
            for _ in 0..<2 { domain.logger.warning("came twice") }
            clocks.pass(60)
            return { [catcher] in catcher.text.contains("came twice withheld=1") }
        }

        private func suspend() async throws {
            let now = clocks.now
            _ = try await store.changeRegistration(of: device.serial, at: now) { current in
                RegistrationRules.suspend(current, because: .byOperator, at: now).map { .becomes($0) } ?? .nothing
            }
        }

        private func devices(_ work: Work) async throws -> Check {
            switch work {
            case .seenDevices:
                clocks.pass(Self.day)
                domain.devices.sawRegistered(device)
                return { [store, device, now = clocks.now] in
                    try await store.device(device.id)?.seenAt.seconds == now.seconds
                }
            case .statuses:
                try await suspend()
                return { [store] in try await store.pendingStatuses(in: .all, limit: 10).isEmpty }
            case .anonymousDevices:
                let anonymous = try await domain.devices.registerAnonymous(
                    UserAgentID(random: .system), app: app, from: nil)
                clocks.pass(31 * Self.day)
                return { [store] in try await store.device(anonymous.id) == nil }
            default:
                if work == .suspendedDevices { try await suspend() }
                clocks.pass((work == .suspendedDevices ? 31 : 271) * Self.day)
                return { [store, device] in try await store.device(device.id) == nil }
            }
        }

        private func channels(_ work: Work) async throws -> Check {
            guard work != .deletedApps else {
                #expect(try await store.deleteApp(app, at: clocks.now))
                return { [store] in try await stores.count(.apps, in: store) == 0 }
            }
            func change(_ user: UserClaim) async throws {
                let request = RegistrationRequest.reports(DeviceProfile(), confirms: false, user: user)
                _ = try await store.changeRegistration(of: device.serial, at: clocks.now) { _ in request }
            }
            if work == .channelsOfFormerUsers { try await change(.signedIn(try #require(UserID("ada")))) }
            let channel = try await domain.channels.register(
                ChannelID(Bytes16(high: 1, low: 1)), device: device.serial, name: nil, vapidKey: nil
            ).channel
            if work == .channelsOfFormerUsers {
                // The server was killed before it closed them.
                try await change(.signedOut)
                return { [store] in try await store.channelsOfFormerUsers(of: nil, in: .all, limit: 10).isEmpty }
            }
            _ = try await domain.publisher.publish(
                PublishRequest(body: [1], coding: ContentCoding(.identity), ttl: 60), to: channel)
            await domain.runtime.inbox.flush()
            clocks.pass(120)
            return { [store] in try await stores.count(.envelopes, in: store) == 0 }
        }

        private func subscriptions(_ work: Work) async throws -> Check {
            let now = clocks.now
            if work == .firings {
                let item = try #require(ItemName("i"))
                var state = ItemState(.merge)
                state.apply(.init(["price": ItemValue(.double(1), digits: "1.0")], at: now))
                let target = Firing.Target(subscription: SubscriptionSerial(99), revision: 1)
                _ = try await store.commitItem(
                    ItemCommit(
                        key: ItemKey(app: device.app, name: item), item: StoredItem(state: state, version: 1),
                        firings: [Firing(item: item, app: device.app, state: state, targets: [target])]))
                return { [store] in try await stores.count(.firings, in: store) == 0 }
            }
            let serial = SubscriptionSerial(1)
            var subscription = SubscriptionRow(
                serial: serial, device: device.serial, app: device.app, createdAt: Timestamp(milliseconds: 1))
            subscription.hasEnded = work == .endedSubscriptions
            subscription.expiresAt = work == .expiredSubscriptions ? now : nil
            subscription.maxFrequency = 1
            try await stores.addSubscription(subscription, in: store)
            guard work == .throttledFirings else {
                return { [store] in try await stores.count(.subscriptions, in: store) == 0 }
            }
            try await stores.addThrottledFiring(of: serial, device.serial, dueAt: now, in: store)
            return { [store] in try await stores.count(.throttledFirings, in: store) == 0 }
        }

        private func rows(_ work: Work) async throws -> Check {
            guard work != .requests else {
                try await stores.addEndedRequest(of: device.serial, device.app, in: store)
                clocks.pass(31 * Self.day)
                return { [store] in try await stores.count(.serviceRequests, in: store) == 0 }
            }
            let past = Timestamp(milliseconds: 1)
            let push = PushRow(
                serial: 1, device: device.serial, queue: PushQueue(app: device.app, environment: .production).number,
                kind: .alert, position: 1, state: work == .expiredPushes ? .scheduled : .handed, dueAt: nil, setAt: past,
                endsAt: past)
            try await stores.addPush(push, in: store)
            guard work == .keptPushes else {
                return { [store] in try await stores.pushStates(in: store) == [.expired] }
            }
            clocks.pass(31 * Self.day)
            return { [store] in try await stores.count(.pushes, in: store) == 0 }
        }

        private func attachments(_ work: Work) async throws -> Check {
            let id = AttachmentID(Bytes16(high: 0xAABB_CCDD_0000_0000, low: 1))
            guard work == .attachments else {
                let folder = stores.factory.attachmentFiles(of: directory.path)
                try await folder.create(id)
                try await folder.publish(id)
                return { [directory] in
                    !FileManager.default.fileExists(atPath: "\(directory.path)/attachments/aa/bb/\(id)")
                }
            }
            let added = try await store.addAttachment(
                AttachmentRequest(
                    proposed: id, owner: AttachmentUser(app: device.app, principal: .senders), length: 1, digest: nil,
                    readers: [.device(device.serial)], lifetimeSeconds: 60, idempotency: nil, limits: .init()),
                at: clocks.now)
            guard case .added(let attachment) = added else { throw StoreFault(.unavailable, "\(added)") }
            _ = try await store.completeAttachment(attachment.serial, expiresAt: clocks.now.adding(seconds: 60))
            clocks.pass(2 * Self.day)
            return { [store] in try await stores.count(.attachments, in: store) == 0 }
        }

        private func updates(_ work: Work) async throws -> Check {
            let definition = Update.Definition(
                kind: .definitions, payload: Array("{}".utf8), audience: nil, mode: .once, ttlSeconds: 3600, orderKey: nil,
                wakes: work == .wakingUpdates, supersedes: nil)
            let request = UpdateRequest(
                proposed: UpdateID(Bytes16(high: 1, low: 1)), app: device.app, key: KeyID(1), definition: definition,
                body: [7], isIndexed: true, idempotency: nil, limits: .init())
            guard case .made = try await store.publishUpdate(request, at: clocks.now) else {
                throw StoreFault(.unavailable, "not published")
            }
            if work == .wakingUpdates {
                return { [store] in try await stores.countWakingUpdates(in: store) == 0 }
            }
            clocks.pass(3601)
            guard work == .endedUpdates else {
                return { [store] in try await stores.countLiveUpdates(in: store) == 0 }
            }
            _ = try await store.endExpiredUpdates(at: clocks.now, limit: 9)
            clocks.pass(31 * Self.day)
            return { [store] in try await stores.count(.updates, in: store) == 0 }
        }

        private func location() async throws -> Check {
            let parameters = #"{"parameters":{"place":"location"}}"#
            let declared = try await routes.request(
                .put, "/v1/apps/com.example.app/parameters", key: routes.admin, parameters)
            #expect(declared.status == 200)
            let values = #"{"place":{"latitude":48.20849,"longitude":16.37208}}"#
            let poll = try await routes.request(
                .post, "/v1/inbox", key: credential,
                #"{"protocol":1,"kinds":["popup"],"parameters":{"revision":"1","values":\#(values)}}"#)
            #expect(poll.status == 200)
            clocks.pass(2 * Self.day)
            return { [store] in try await stores.countLocatedBindings(in: store) == 0 }
        }
    }

    @Test(arguments: Work.allCases)
    func `a running server does the due work`(work: Work) async throws {
        let world = try await World()
        let isDone = try await world.prepare(work)
        #expect(try await !isDone(), "it is not done yet")
        let sweeper = world.sweep()
        defer { sweeper.cancel() }
        try await eventually { try await isDone() }
    }

    private final class Connection: LiveSession {
        let withdrawn = Mutex<[DeliveryMachine.Withdrawal]>([])
        func offer(_ envelope: Envelope) {}
        func offerVolatile(_ envelope: Envelope, answer: @escaping @Sendable (Bool) -> Void) { answer(false) }
        func storedMore() {}
        func withdrew(_ withdrawal: DeliveryMachine.Withdrawal, done: @escaping @Sendable () -> Void) {
            withdrawn.withLock { $0.append(withdrawal) }
            done()
        }
        func finished(_ ids: [MessageID]) {}
        func end(because reason: SessionEnd) {}
    }

    @Test func `a connection is informed of expired messages, so that it waits for no answer`() async throws {
        let world = try await World()
        let (connection, device) = (Connection(), world.device.serial)
        world.domain.runtime.sessions.join(connection, device: device)
        _ = try await world.prepare(.expiredMessages)
        let position = try #require(try await stores.positions(in: world.store).first)
        #expect(connection.withdrawn.withLock { $0 }.isEmpty)
        let sweeper = world.sweep()
        defer { sweeper.cancel() }
        try await eventually { connection.withdrawn.withLock { $0 } == [.envelope(position)] }
    }

    @Test func `every step of the sweepers is in the table`() throws {
        let tests = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        let folder = tests.deletingLastPathComponent().deletingLastPathComponent()
            .appendingPathComponent("Sources/CarillonServer/Lifecycle")
        var steps: [String] = []
        for file in ["Sweeper.swift", "StoreSweeper.swift"] {
            let text = try String(contentsOf: folder.appendingPathComponent(file), encoding: .utf8)
            for call in ["report(\"", "report.repeating(\""] {
                steps += text.components(separatedBy: call).dropFirst().map { part in String(part.prefix { $0 != "\"" }) }
            }
        }
        #expect(steps.count >= 18)
        // NeverFiredTests, ItemLifeTests and TwoHomesRegistryTests have these.
        let others: Set = ["subscriptions that never fired", "idle items", "rules for items", "deletions at other homes"]
        #expect(Set(steps) == Set(Work.allCases.compactMap(\.step)).union(others))
    }
}
