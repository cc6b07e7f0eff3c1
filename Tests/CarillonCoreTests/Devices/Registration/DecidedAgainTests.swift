import CarillonCore
import CarillonWire
import Synchronization
import Testing

/// Changes of a registration that changes while they are decided.
struct DecidedAgainTests {
    private let store = ScriptedDeviceStore()
    private let device = RegistrationSample.device

    /// A registration that differs by the version of the app.
    private static func registration(_ version: Int) -> DeviceRegistration {
        var registration = RegistrationSample.registration()
        registration.profile.appVersion = "\(version)"
        return registration
    }

    /// Versions of the app that changes were decided on.
    private final class Decisions {
        var versions: [String] = []

        func decide(_ current: DeviceRegistration) -> RegistrationRequest {
            versions.append(current.profile.appVersion ?? "")
            return .nothing
        }
    }

    @Test func `a change is decided again with the data that is stored by then`() async throws {
        let decisions = Decisions()
        let decision = RegistrationRules.Decision.unchanged(Self.registration(3))
        store.script(Self.registration(1)) { number in
            number < 3 ? .outdated(Self.registration(number + 1)) : .decided(decision)
        }
        let result = try await store.changeRegistration(of: device, at: RegistrationSample.now) { decisions.decide($0) }
        let decided = try result?.get()
        #expect(decided == decision)
        #expect(decisions.versions == ["1", "2", "3"])
        #expect(store.bases == decisions.versions)
    }

    @Test func `a change of a registration that changes each time fails`() async throws {
        let decisions = Decisions()
        store.script(Self.registration(1)) { .outdated(Self.registration($0 + 1)) }
        await #expect(throws: StoreFault.self) {
            try await store.changeRegistration(of: device, at: RegistrationSample.now) { decisions.decide($0) }
        }
        #expect(decisions.versions.count == RegistrationRules.mostDecisions)
    }

    @Test func `refusals and missing devices are passed on`() async throws {
        let refusal = Refusal(.fieldInvalid, "no")
        func change(_ change: RegistrationChange) async throws -> Result<RegistrationRules.Decision, Refusal>? {
            try await store.changeRegistration(of: device, at: RegistrationSample.now, change)
        }
        #expect(try await change { _ in .nothing } == nil)
        store.script(Self.registration(1)) { _ in .refused(refusal) }
        #expect(try await change { _ in .nothing } == .failure(refusal))
        #expect(try await change { _ throws(Refusal) in throw refusal } == .failure(refusal))
        #expect(store.bases == ["1"], "a refused change is not written")
        store.script(Self.registration(1)) { _ in .deviceGone }
        #expect(try await change { _ in .nothing } == nil)
    }
}

/// Has one registration, and answers writes as the test sets.
private final class ScriptedDeviceStore: DeviceStore {
    private struct State {
        var registration: DeviceRegistration?
        var answer: (@Sendable (_ number: Int) -> RegistrationWrite)?
        var bases: [String] = []
    }

    private struct NotAsked: Error {}

    private let state = Mutex(State())

    func script(_ registration: DeviceRegistration, _ answer: @escaping @Sendable (_ number: Int) -> RegistrationWrite) {
        state.withLock { ($0.registration, $0.answer) = (registration, answer) }
    }

    /// Versions of the app that writes were decided on.
    var bases: [String] { state.withLock { $0.bases } }

    func registration(of device: DeviceSerial) async throws -> DeviceRegistration? { state.withLock { $0.registration } }

    func writeRegistration(
        _ request: RegistrationRequest, decidedOn basis: DeviceRegistration, at now: Timestamp
    ) async throws -> RegistrationWrite {
        let (answer, number) = state.withLock { state in
            state.bases.append(basis.profile.appVersion ?? "")
            return (state.answer, state.bases.count)
        }
        guard let answer else { throw NotAsked() }
        return answer(number)
    }

    func insertDevice(_ new: NewDevice, at now: Timestamp, credential: NewCredential) async throws -> InsertedDevice {
        throw NotAsked()
    }
    func pendingStatuses(in shards: ShardSet, limit: Int) async throws -> [PendingStatus] { throw NotAsked() }
    func device(_ id: DeviceID) async throws -> Device? { throw NotAsked() }
    func device(_ serial: DeviceSerial) async throws -> Device? { throw NotAsked() }
    func device(withCredential hash: SecretHash) async throws -> Device? { throw NotAsked() }
    func device(registeredBy secret: SecretHash, in app: AppID) async throws -> Device? { throw NotAsked() }
    func devices(app: AppID, _ filter: DeviceFilter, after place: DeviceSerial?, limit: Int) async throws -> DevicePart {
        throw NotAsked()
    }
    func markSeen(_ devices: [DeviceSerial], areAnonymous: Bool, at now: Timestamp) async throws { throw NotAsked() }
    func devicesCame(_ devices: [DeviceSerial], at now: Timestamp) async throws { throw NotAsked() }
    func unusedDevices(
        _ reason: UnusedDevice.Reason, in shards: ShardSet, by cutoff: RetentionCutoff, limit: Int
    ) async throws -> [UnusedDevice] { throw NotAsked() }
    func resetBadge(of device: DeviceSerial) async throws -> Bool { throw NotAsked() }
    func renewCredential(of device: DeviceSerial, to hash: SecretHash) async throws -> Bool { throw NotAsked() }
    func devices(
        registeredWith key: KeyID, of app: AppID, after place: DeviceSerial?, limit: Int
    ) async throws -> KeyDevices { throw NotAsked() }
    func deleteDevice(_ serial: DeviceSerial, unlessSeenAfter cutoff: RetentionCutoff?, at now: Timestamp) async throws
        -> RemovedDevices?
    { throw NotAsked() }
}
