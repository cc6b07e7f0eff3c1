import CarillonCore
import CarillonSQLite
import CarillonWire
import Testing

@Suite(.timeLimit(.minutes(1)))
struct KeysOfDevicesTests {
    private func key(_ number: UInt64, in fixture: StoreFixture) async throws -> KeyID {
        let key = AccessKey(
            id: KeyID(number), role: .client, app: try StoreFixture.appID, name: nil, secretHash: SecretHash(of: [1]),
            createdAt: StoreFixture.start)
        #expect(try await fixture.store.insertKey(key))
        return key.id
    }

    @Test(arguments: StoreKind.allCases)
    func `a device is found by the key that it registered with, and a revoked key registers none`(kind: StoreKind)
        async throws
    {
        let fixture = try await StoreFixture(kind)
        let one = try await key(.max, in: fixture)
        let other = try await key(2, in: fixture)
        func register(_ number: UInt64, _ key: KeyID?) async throws -> DeviceID? {
            try await fixture.store.insertDevice(
                NewDevice(DeviceID(Bytes16(high: 9, low: number)), app: try StoreFixture.appID, key: key),
                at: StoreFixture.start
            ) { _ in SecretHash(of: [9, UInt8(number)]) }?.id
        }
        let first = try await register(1, one)
        let second = try await register(2, one)
        _ = try await register(3, other)
        _ = try await register(4, nil)
        let found = try await fixture.store.devices(registeredWith: one, limit: 9).map(\.id)
        #expect(found == [first, second])
        #expect(try await fixture.store.devices(registeredWith: one, limit: 1).count == 1)
        #expect(try await fixture.store.revokeKey(one, at: StoreFixture.start))
        #expect(try await register(5, one) == nil)
        #expect(try await register(6, KeyID(77)) == nil)
        #expect(try await fixture.store.devices(registeredWith: one, limit: 9).count == 2)
    }
}
