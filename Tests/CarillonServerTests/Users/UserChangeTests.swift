import CarillonBasics
import CarillonCore
import CarillonWire
import Crypto
import HTTPTypes
import Synchronization
import TestStores
import TestSupport
import Testing

@testable import CarillonServer

/// The next user of a device receives nothing of the former one.
@Suite(.timeLimit(.minutes(5)))
struct UserChangeTests {
    /// Stores its withdrawals.
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

    // MARK: By HTTP

    enum Way: String, CaseIterable, Sendable {
        case patch, patchNull, put, register
    }

    private let signer = TokenSigner.es256(P256.Signing.PrivateKey())

    private func token(_ user: String, in world: ServiceWorld) throws -> String {
        let claims = #"{"sub":"\#(user)","aud":"com.example.files","exp":\#(world.clock.now.seconds + 600)}"#
        return try signer.token(claims, header: ["kid": "\"one\""])
    }

    private func change(_ phone: ServiceWorld.Phone, _ way: Way, _ key: String, in world: ServiceWorld) async throws
        -> String
    {
        let routes = world.routes
        let claim = #"{"userToken":"\#(try token("ben", in: world))"}"#
        let answer: RouteFixture.Answer
        switch way {
        case .patch: answer = try await routes.request(.patch, "/v1/device", key: phone.credential, claim)
        case .patchNull:
            answer = try await routes.request(.patch, "/v1/device", key: phone.credential, #"{"userToken":null}"#)
        case .put: answer = try await routes.request(.put, "/v1/device", key: phone.credential, claim)
        case .register:
            answer = try await routes.request(
                .post, "/v1/devices", key: key,
                #"{"registration":"\#(Self.registration)","userToken":"\#(try token("ben", in: world))"}"#)
            #expect(answer.status == 201 && answer["id"] == phone.id)
            return answer["credential"]
        }
        #expect(answer.status == 200)
        return phone.credential
    }

    private static let registration = String(repeating: "abcd", count: 10)

    /// A device of ada that registered with a secret of its own, and can be pushed to.
    private func provider(in world: ServiceWorld) async throws -> (phone: ServiceWorld.Phone, key: String) {
        let routes = world.routes
        _ = try await world.phone("com.example.files", of: nil)
        let rules = try await routes.request(
            .put, "/v1/apps/com.example.files/users", key: routes.admin, #"{"jwks":{"keys":[\#(try signer.jwk("one"))]}}"#)
        #expect(rules.status == 200)
        let key = try await routes.request(
            .post, "/v1/keys", key: routes.admin, #"{"role":"client","app":"com.example.files"}"#)["secret"]
        let made = try await routes.request(
            .post, "/v1/devices", key: key,
            #"{"registration":"\#(Self.registration)","userToken":"\#(try token("ada", in: world))"}"#)
        let id = try #require(DeviceID(made["id"]))
        let device = try #require(try await routes.store.device(id))
        var profile = DeviceProfile()
        profile.address = .init(platform: .apple, token: try PushToken(hexadecimal: "aa01"), environment: .production)
        let request = RegistrationRequest.reports(profile, confirms: true)
        _ = try await routes.store.changeRegistration(of: device.serial, at: world.clock.now) { _ in request }?.get()
        return (
            .init(id: made["id"], credential: made["credential"], app: "com.example.files", serial: device.serial), key
        )
    }

    @Test(arguments: Way.allCases)
    func `the next user sees no request, reads no attachment and is not woken, and the consumer gets an outcome`(
        way: Way
    ) async throws {
        let world = try await ServiceWorld()
        let (store, domain) = (world.routes.store, world.routes.domain)
        let consumer = try await world.phone("com.example.mail", of: "ada")
        var (provider, key) = try await provider(in: world)
        try await world.share("house", "com.example.mail", "com.example.files")
        try await world.offer(provider)
        let reader = try #require(try await store.device(provider.serial))
        let sender = try #require(try await store.device(consumer.serial))
        let file = AttachmentID(Bytes16(high: 3, low: 1))
        let added = try await store.addAttachment(
            AttachmentRequest(
                proposed: file, owner: AttachmentUser(app: sender.app, principal: .device(sender.serial)), length: 10,
                digest: nil, readers: [.device(reader.serial)], lifetimeSeconds: 5000, idempotency: nil, limits: .init()),
            at: world.clock.now)
        guard case .added(let attachment) = added else { throw StoreFault(.unavailable, "not added") }
        _ = try await store.completeAttachment(attachment.serial, expiresAt: world.clock.now.adding(seconds: 5000))
        let user = AttachmentUser(app: reader.app, principal: .device(reader.serial))
        #expect(try await domain.attachments.fetchable(file, for: user).id == file)
        #expect(try await world.ask(1, from: consumer, to: provider).status == 201)
        let positions = try await stores.positions(in: store)
        #expect(positions.count == 1)
        let queue = PushQueue(app: reader.app, environment: .production)
        #expect(try await store.dueQueues(in: .all, at: world.clock.now.adding(seconds: 60)) == [queue])
        let connection = Connection()
        domain.runtime.sessions.join(connection, device: provider.serial)

        provider.credential = try await change(provider, way, key, in: world)

        #expect(connection.withdrawn.withLock { $0 }.contains(.envelopes(Set(positions))))
        #expect(try await world.frames(of: provider).isEmpty)
        #expect(try await store.dueQueues(in: .all, at: world.clock.now.adding(seconds: 5000)).isEmpty)
        await #expect(throws: Refusal.attachmentUnknown) { try await domain.attachments.fetchable(file, for: user) }
        let id = try #require(ServiceRequestID(ServiceWorld.id(1)))
        #expect(try await world.events(of: consumer) == [.failed(id, code: "user_mismatch")], "without a sweep")
        #expect(try await world.reply(1, by: provider).code == "request_finished")
        #expect(try await world.find(by: consumer).isEmpty)
        _ = try await store.removeEndedAttachments(
            by: .uninterrupted(at: world.clock.now), unfinishedSeconds: 86_400, limit: 10)
        #expect(try await stores.count(.attachments, in: store) == 0, "it has no reader left")
    }

    @Test(arguments: Way.allCases)
    func `a device whose user changes between the read of its inbox and its session receives nothing of the former one`(
        way: Way
    ) async throws {
        let world = try await ServiceWorld()
        let domain = world.routes.domain
        let consumer = try await world.phone("com.example.mail", of: "ada")
        let (provider, key) = try await provider(in: world)
        try await world.share("house", "com.example.mail", "com.example.files")
        try await world.offer(provider)
        #expect(try await world.ask(1, from: consumer, to: provider).status == 201)
        let credential = try DeviceRegistrar.credential(provider.credential)
        let name = DeviceName.id(credential.device, credential: credential.hash)
        let load = PageRequest(after: 0, limit: 9, bytes: 100_000)
        #expect(try await world.routes.store.arrival(of: name, load, at: world.clock.now)?.envelopes?.count == 1)
        let store = PausedInboxStore(world.routes.store)
        let home = store.home(of: domain)
        let sessions = home.sessions
        let connection = Connection()
        let proof = DeviceProof.credential(credential.hash)
        async let arrival = home.arrive(name, proof, load, speaking: 1, as: connection)
        await store.hasRead()
        _ = try await change(provider, way, key, in: world)
        store.goOn()
        let arrived = try await arrival
        #expect(arrived.device?.page == InboxPage(envelopes: [], isComplete: true))
        #expect(sessions.session(of: provider.serial) === connection)
    }

    // MARK: Every kind

    private struct Placed {
        var kind: EnvelopeKind
        var isOfUser: Bool
    }

    /// A device with an envelope of every kind: of channels and subscriptions of its user, and of its own.
    private func fill(_ phone: ServiceWorld.Phone, _ world: ServiceWorld) async throws -> [Int64: Placed] {
        let (store, now) = (world.routes.store, world.clock.now)
        let app = try #require(try await store.device(phone.serial)).app
        for (serial, user) in [(101, nil), (102, "ada")] as [(Int64, String?)] {
            var subscription = SubscriptionRow(
                serial: SubscriptionSerial(serial), device: phone.serial, app: app, createdAt: now)
            subscription.user = user
            try await stores.addSubscription(subscription, in: store)
        }
        let channels = try await stores.channels(in: store).map(\.rawValue)
        var placed: [Int64: Placed] = [:]
        for kind in EnvelopeKind.allCases {
            for isOfUser in [false, true] {
                let position = Int64(placed.count + 1)
                let origin: (kind: Origin.Kind, serial: Int64) =
                    switch kind {
                    case .message, .channelClosed, .channelError, .pingFailed, .recovered:
                        (.channel, channels[isOfUser ? 1 : 0])
                    case .deviceStatus: (.device, phone.serial.rawValue)
                    case .fired: (.subscription, isOfUser ? 102 : 101)
                    case .update, .retraction: (.update, 900)
                    case .serviceRequest, .serviceReply, .serviceNotice: (.request, position)
                    }
                let envelope = EnvelopeRow(
                    position: position, device: phone.serial, app: app, kind: kind, originKind: origin.kind,
                    origin: origin.serial, acceptedAt: now)
                try await stores.addEnvelope(envelope, in: store)
                placed[position] = Placed(kind: kind, isOfUser: isOfUser)
            }
        }
        return placed
    }

    private func phone(in world: ServiceWorld, of user: String?) async throws -> ServiceWorld.Phone {
        let phone = try await world.phone("com.example.app", of: nil)
        func open(_ number: UInt64) async throws {
            let id = ChannelID(Bytes16(high: 7, low: number))
            _ = try await world.routes.domain.channels.register(id, device: phone.serial, name: nil, vapidKey: nil)
        }
        try await open(1)
        if let user { try await world.signIn(user, on: phone) }
        try await open(2)
        return phone
    }

    private func changed(_ phone: ServiceWorld.Phone, to claim: UserClaim, in world: ServiceWorld) async throws -> [Int64] {
        let request = RegistrationRequest.reports(DeviceProfile(), confirms: false, user: claim)
        let result = try await world.routes.store.changeRegistration(of: phone.serial, at: world.clock.now) { _ in request }
        return try #require(result).get().ended
    }

    @Test(arguments: ["ben", nil])
    func `every kind of envelope ends or stays with a change of the user as the list declares`(next: String?) async throws {
        let world = try await ServiceWorld()
        let phone = try await phone(in: world, of: "ada")
        let placed = try await fill(phone, world)
        #expect(placed.count == 2 * EnvelopeKind.allCases.count)
        let ended = try await changed(phone, to: next.flatMap(UserID.init).map { .signedIn($0) } ?? .signedOut, in: world)
        let wanted = placed.filter { UserChange.rule(for: $0.value.kind).extent.ends(isOfUser: $0.value.isOfUser) }
        #expect(Set(ended) == Set(wanted.keys))
        let store = world.routes.store
        #expect(try await Set(stores.positions(in: store)) == Set(placed.keys).subtracting(ended))
        #expect(try await stores.countOutcomes("gone", in: store) == 1)
        #expect(try await stores.subscriptions(in: store) == [SubscriptionSerial(101)])
        #expect(try await stores.ownersOfChannels(in: store) == [0, 2])
    }

    @Test func `when a device without a user gets one, only the envelopes end that end with every change in the list`()
        async throws
    {
        let world = try await ServiceWorld()
        let phone = try await phone(in: world, of: nil)
        let placed = try await fill(phone, world)
        let ended = try await changed(phone, to: .signedIn(try #require(UserID("ada"))), in: world)
        let wanted = placed.filter { UserChange.rule(for: $0.value.kind).extent.ends(isOfUser: false) }
        #expect(!wanted.isEmpty && Set(ended) == Set(wanted.keys))
        #expect(try await changed(phone, to: .signedIn(try #require(UserID("ada"))), in: world).isEmpty)
    }

    // MARK: Pushes, channels, files

    @Test func `pushes for ended envelopes are cancelled, and others stay`() async throws {
        let world = try await ServiceWorld()
        let phone = try await phone(in: world, of: "ada")
        let placed = try await fill(phone, world)
        let (store, now) = (world.routes.store, world.clock.now)
        func position(_ isOfUser: Bool) throws -> Int64 {
            try #require(placed.first { $0.value.kind == .fired && $0.value.isOfUser == isOfUser }).key
        }
        let (hers, own) = (try position(true), try position(false))
        // Scheduled, parked, leased; of another envelope; one of hers that shows an acknowledged envelope; handed.
        let pushes: [(kind: PushKind, last: Int64, state: PushState)] = [
            (.trigger, hers, .scheduled), (.trigger, hers, .parked), (.trigger, hers, .leased), (.trigger, own, .scheduled),
            (.unconditional, 999, .scheduled), (.trigger, hers, .handed), (.unconditional, 998, .scheduled),
        ]
        for (place, push) in pushes.enumerated() {
            let row = PushRow(
                serial: Int64(place + 1), device: phone.serial, queue: 4, kind: push.kind, position: push.last,
                state: push.state, dueAt: now, setAt: now, endsAt: now.adding(seconds: 600))
            try await stores.addPush(row, in: store)
        }
        for (push, subscription) in [(5, 102), (7, 101)] as [(Int64, Int64)] {
            try await stores.keepPush(push, of: SubscriptionSerial(subscription), at: now, in: store)
        }
        try await stores.setBadges(5, in: store)
        _ = try await changed(phone, to: .signedOut, in: world)
        let states = try await stores.pushStates(in: store)
        #expect(states == [.cancelled, .cancelled, .leased, .scheduled, .cancelled, .handed, .scheduled])
        #expect(try await stores.keptPushes(in: store) == [7])
        #expect(try await stores.badges(in: store) == [0])
    }

    @Test func `channels of the user are closed in the same transaction, and their backends are called once`() async throws {
        let world = try await ServiceWorld()
        let (store, domain) = (world.routes.store, world.routes.domain)
        let phone = try await phone(in: world, of: "ada")
        let hers = try #require(
            try await store.channel(ChannelID(Bytes16(high: 7, low: 2)), device: phone.serial))
        let request = WatchRequest(
            channel: hers.serial, ping: nil, firstDueAt: nil, disconnectAddress: try CallAddress("https://example.com/gone"),
            sealed: .init(secret: [1], token: [2]), callbackID: "msg_1", renewsSecret: false)
        _ = try await store.putWatch(request, at: world.clock.now)
        _ = try await changed(phone, to: .signedOut, in: world)
        #expect(try await stores.count(.watches, in: store) == 0)
        #expect(try await stores.countDisconnectCallbacks(because: "user_changed", in: store) == 1)
        let envelope = Envelope(
            id: MessageID(position: 50, secret: Bytes16(high: 1, low: 1)), device: phone.serial, app: hers.app,
            origin: hers.origin, kind: .message(.init(body: [1], coding: nil)), acceptedAt: world.clock.now,
            expiresAt: world.clock.now.adding(seconds: 60))
        #expect(try await store.commit([.append(envelope, AppendRules())]) == [.originGone])
        try await domain.formerChannels.closeAll()
        #expect(try await stores.count(.channels, in: store) == 1)
        #expect(try await stores.count(.disconnectCallbacks, in: store) == 1)
        let frames = try await world.frames(of: phone)
        #expect(frames.count == 1)
    }

    @Test func `the device neither owns nor reads the files of its former user, and those of its own stay`() async throws {
        let world = try await ServiceWorld()
        let (store, domain, now) = (world.routes.store, world.routes.domain, world.clock.now)
        let phone = try await phone(in: world, of: nil)
        let device = try #require(try await store.device(phone.serial))
        let user = AttachmentUser(app: device.app, principal: .device(device.serial))
        let senders = AttachmentUser(app: device.app, principal: .senders)
        func add(
            _ number: UInt64, by owner: AttachmentUser, for reader: AttachmentPrincipal, isWhole: Bool = true,
            key: UInt8? = nil
        )
            async throws
            -> AttachmentSerial
        {
            let added = try await store.addAttachment(
                AttachmentRequest(
                    proposed: AttachmentID(Bytes16(high: 3, low: number)), owner: owner, length: 10, digest: nil,
                    readers: [reader], lifetimeSeconds: 5000, idempotency: ([key ?? UInt8(number)], [1]), limits: .init()),
                at: now)
            guard case .added(let attachment) = added else { throw StoreFault(.unavailable, "\(added)") }
            if isWhole {
                _ = try await store.completeAttachment(attachment.serial, expiresAt: now.adding(seconds: 5000))
            }
            return attachment.serial
        }
        func can(_ number: UInt64, _ principal: AttachmentUser) async throws -> Bool {
            do {
                _ = try await domain.attachments.fetchable(AttachmentID(Bytes16(high: 3, low: number)), for: principal)
                return true
            } catch let refusal as Refusal where refusal.code == .attachmentUnknown {
                return false
            }
        }
        _ = try await add(1, by: user, for: .senders)
        _ = try await add(2, by: senders, for: user.principal)
        try await world.signIn("ada", on: phone)
        _ = try await add(3, by: user, for: .senders)
        let unfinished = try await add(4, by: user, for: .senders, isWhole: false)
        _ = try await add(5, by: senders, for: user.principal)
        for number in [1, 2, 3, 5] as [UInt64] { #expect(try await can(number, user)) }
        try await world.signIn("ben", on: phone)
        for number in [1, 2] as [UInt64] { #expect(try await can(number, user), "channels without a user") }
        for number in [3, 5] as [UInt64] {
            #expect(try await !can(number, user))
            #expect(try await can(number, senders))
        }
        #expect(try await !store.noteSynced(unfinished, upTo: 5, expiresAt: now.adding(seconds: 60)))
        #expect(try await !store.completeAttachment(unfinished, expiresAt: now.adding(seconds: 60)))
        // A key of the former user's is free.
        _ = try await add(6, by: user, for: .senders, isWhole: false, key: 3)
        await #expect(throws: Refusal.attachmentUnknown) {
            try await domain.attachments.end(AttachmentID(Bytes16(high: 3, low: 3)), by: user)
        }
        let (removed, isDone) = try await store.removeEndedAttachments(
            by: .uninterrupted(at: now), unfinishedSeconds: 86_400, limit: 10)
        #expect(isDone && Set(removed) == Set([4, 5].map { AttachmentID(Bytes16(high: 3, low: $0)) }))
        #expect(try await stores.count(.attachments, in: store) == 4)
    }
}
