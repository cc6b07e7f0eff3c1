import CarillonBasics
import CarillonCore
import CarillonWire
import Testing

/// The derivation of a credential from the secret of its registration. It never changes: devices repeat registrations after an update
/// of the server.
struct DeviceCredentialTests {
    private static let secret = String(repeating: "a", count: 43)
    private static let id = "00112233445566778899aabbccddeeff"

    @Test func `the credential of a registration is a keyed hash of the device's id`() throws {
        let device = try #require(DeviceID(Self.id))
        let credential = DeviceCredential(device: device, registration: Self.secret)
        // The first 24 bytes of HMAC-SHA256 with the secret as the key, over "carillon device credential " and the id.
        #expect(credential.text == "\(Self.id).MaQUdOSp8Cjv14kzz6LLnV7uWhYjOI3c")
        let other = try #require(DeviceID("10112233445566778899aabbccddeeff"))
        #expect(DeviceCredential(device: other, registration: Self.secret).text.suffix(32) != credential.text.suffix(32))
    }

    @Test func `the stored hash of a registration's secret does not lead to the credential`() throws {
        let device = try #require(DeviceID(Self.id))
        let credential = DeviceCredential(device: device, registration: Self.secret)
        let hash = SecretHash(of: Self.secret.utf8).bytes
        for key in [Hexadecimal.encode(hash), Base64URL.encode(hash)] {
            #expect(DeviceCredential(device: device, registration: key).text != credential.text)
        }
        // The same derivation with the 32 bytes of the hash as the key.
        #expect(credential.text != "\(Self.id).XDpDzvliocc3FP0HK4oLg-06sYXRFSnq")
        #expect(credential.text != DeviceCredential(device: device, secret: Array(hash.prefix(24))).text)
    }
}
