import CarillonCore
import CarillonWire
import TestStores
import Testing

/// A store with devices of users that offer services and call each other.
struct ServiceFixture {
    static let start = StoreFixture.start
    static let service = "com.example.transfer"

    let base: StoreFixture
    var store: any Store { base.store }

    init(_ stores: any StoreMaker, _ limits: InboxLimits = .init()) async throws {
        base = try await StoreFixture(stores, limits)
    }

    // MARK: Devices

    static func user(_ text: String) throws -> UserID { try #require(UserID(text)) }

    /// Adds a device to an app, which is created if it is missing.
    func device(_ number: UInt64, of user: String? = "ada", app: String = "com.example.app") async throws -> Device {
        let id = try #require(AppID(app))
        _ = try await store.createApp(id, at: Self.start)
        let claim = try user.map { UserClaim.signedIn(try Self.user($0)) }
        let new = NewDevice(DeviceID(Bytes16(high: 4, low: number)), app: id, user: claim)
        return try #require(try await base.insert(new, secret: [4, UInt8(number)]))
    }

    /// Changes the user of a device; nil signs the user out.
    func signIn(_ user: String?, on device: Device) async throws {
        let claim = try user.map { UserClaim.signedIn(try Self.user($0)) } ?? .signedOut
        let result = try await store.changeRegistration(of: device.serial, at: Self.start) { current in
            .reports(current.profile, confirms: false, user: claim)
        }
        _ = try #require(result).get()
    }

    /// A serial number of an app that was deleted.
    func deletedApp() async throws -> AppSerial {
        let id = try #require(AppID("com.example.deleted"))
        let app = try #require(try await store.createApp(id, at: Self.start))
        _ = try await store.deleteApp(id, at: Self.start)
        while try await !store.continueDeletions(at: Self.start, limit: 100).isDone {}
        return app.serial
    }

    // MARK: Providers

    static let keys = KeyBundle(
        identity: Array(repeating: 1, count: 32), id: "00112233445566aa", key: Array(repeating: 2, count: 32),
        until: 2_000_000_000_000, signature: Array(repeating: 3, count: 64))

    static func profile(
        _ name: String = "phone", offering versions: [String] = ["1.0"], icon: ServiceIcon? = nil, revision: String? = nil
    ) throws -> ServiceProvider.Profile {
        let offers = try versions.map { version in
            ServiceOffer(try #require(ServiceID(service)), try #require(ServiceVersion(version)))
        }
        return ServiceProvider.Profile(
            name: name, version: "2", offers: offers, keys: keys, icon: icon, revision: revision)
    }

    func offer(_ devices: Device...) async throws {
        let profile = try Self.profile()
        for device in devices { _ = try await store.putServiceProfile(profile, of: device.serial) }
    }

    /// The devices that a device finds; nil if it may not call any.
    func found(by caller: Device, _ query: ServiceQuery = .init(), limit: Int = 10) async throws -> Set<DeviceID>? {
        let reach = try await store.serviceProviders(for: caller.serial, query, limit: limit)
        return reach.map { Set($0.providers.map(\.id)) }
    }

    // MARK: Requests

    static func id(_ number: Int64) -> ServiceRequestID {
        ServiceRequestID(Bytes16(high: 6, low: UInt64(bitPattern: number)))
    }

    /// A request whose envelope has the given position.
    static func request(
        _ number: Int64, from consumer: Device, to provider: Device, ttl: Int64 = 60
    ) -> ServiceRequest {
        ServiceRequest(
            id: id(number), envelope: message(number), consumer: consumer.serial, consumerApp: consumer.app,
            provider: provider.serial, providerApp: provider.app, fingerprint: [7],
            expiresAt: start.adding(seconds: ttl))
    }

    private static func message(_ position: Int64) -> MessageID {
        MessageID(position: position, secret: Bytes16(high: 6, low: UInt64(bitPattern: position)))
    }

    /// The users of two devices at present.
    func parties(_ consumer: Device, _ provider: Device) async throws -> RequestUsers {
        let query = ServiceQuery(device: provider.id)
        let reach = try #require(try await store.serviceProviders(for: consumer.serial, query, limit: 1))
        return RequestUsers(consumer: reach.caller, provider: try #require(reach.providers.first).user)
    }

    static func made(
        _ request: ServiceRequest, _ parties: RequestUsers, sharing isShared: Bool = false
    ) -> InboxOperation {
        operation(.made(request, between: parties), of: request, at: request.serial.rawValue, isShared: isShared)
    }

    /// Makes a request between the present users of two devices.
    @discardableResult
    func make(
        _ number: Int64, from consumer: Device, to provider: Device, ttl: Int64 = 60
    ) async throws -> ServiceRequest {
        let request = Self.request(number, from: consumer, to: provider, ttl: ttl)
        let operation = Self.made(request, try await parties(consumer, provider))
        #expect(try await store.commit([operation]) == [.stored(replaced: nil)])
        return request
    }

    /// The append that carries a step of a request to the notified device.
    static func operation(
        _ step: RequestStep, of request: ServiceRequest, at position: Int64, isShared: Bool = false
    ) -> InboxOperation {
        let (isForProvider, part) = delivery(of: step)
        let envelope = Envelope(
            id: message(position), device: isForProvider ? request.provider : request.consumer,
            app: isForProvider ? request.providerApp : request.consumerApp, origin: request.origin,
            kind: .service(part, body: [1, 2, 3]), acceptedAt: start, expiresAt: start.adding(seconds: 1_000_000))
        let rules = AppendRules(effects: [.request(step)], consumer: isShared ? request.consumer : nil)
        return .append(envelope, rules)
    }

    private static func delivery(of step: RequestStep) -> (isForProvider: Bool, part: Envelope.ServicePart) {
        switch step {
        case .made: (isForProvider: true, part: .request)
        case .unwanted: (isForProvider: true, part: .notice)
        case .received, .finished(_, nil, _): (isForProvider: false, part: .notice)
        case .finished: (isForProvider: false, part: .reply)
        }
    }

    /// Whether a step counted.
    func notify(_ step: RequestStep, of request: ServiceRequest, at position: Int64) async throws -> Bool {
        let result = try await store.commit([Self.operation(step, of: request, at: position)])[0]
        guard result != .stored(replaced: nil) else { return true }
        #expect(result == .originGone)
        return false
    }
}
