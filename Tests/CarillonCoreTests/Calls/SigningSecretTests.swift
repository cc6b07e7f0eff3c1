import CarillonCore
import Foundation
import Testing

struct SigningSecretTests {
    /// The example that the libraries of Standard Webhooks are tested with.
    @Test func `a signature is that of Standard Webhooks`() throws {
        let secret = SigningSecret(bytes: Array(try #require(Data(base64Encoded: "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"))))
        #expect(secret.text == "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
        let signature = secret.signature(
            id: "msg_p5jXN8AQM9LWM0D4loKWxJek", seconds: 1_614_265_330, body: Array(#"{"test": 2432232314}"#.utf8))
        #expect(signature == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=")
    }
}
