import CarillonBasics
import Crypto

extension APNsSimulator.SigningKey {
    /// - Parameter subject: The name of the text, at the start of a sentence.
    static func readPrivateKey(
        _ pem: String, _ subject: String
    ) throws(APNsSimulator.SimulatorError) -> P256.Signing.PrivateKey {
        let fault: KeyFault
        do {
            return try P256.Signing.PrivateKey(rawRepresentation: try KeyMaterial(pem).p256PrivateKey())
        } catch let known as KeyFault {
            fault = known
        } catch {
            fault = .undecodable(label: "PRIVATE KEY")
        }
        throw APNsSimulator.SimulatorError(.keyInvalid, fault.sentence(subject, need: "a P-256 private key in PEM form"))
    }

    static func readPublicKey(
        _ pem: String, _ subject: String
    ) throws(APNsSimulator.SimulatorError) -> P256.Signing.PublicKey {
        let fault: KeyFault
        do {
            return try P256.Signing.PublicKey(derRepresentation: try KeyMaterial(pem).p256PublicKey())
        } catch let known as KeyFault {
            fault = known
        } catch {
            fault = .undecodable(label: "PUBLIC KEY")
        }
        throw APNsSimulator.SimulatorError(.keyInvalid, fault.sentence(subject, need: "a P-256 public key in PEM form"))
    }

    static func checkLength(_ identifier: String, _ name: String) throws(APNsSimulator.SimulatorError) {
        let count = identifier.utf8.count
        guard count == 10 else {
            // A longer text is not repeated, because it can be the key itself, passed as its ID.
            let subject = count <= 40 ? "The \(name) \"\(identifier)\"" : "The \(name)"
            throw APNsSimulator.SimulatorError(
                .identifierInvalid, "\(subject) has \(count) bytes; it must have 10 characters of ASCII.")
        }
    }
}
