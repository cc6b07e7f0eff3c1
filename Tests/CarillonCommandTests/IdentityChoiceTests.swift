import ArgumentParser
import Testing

@testable import CarillonCommand

/// Which identities `services accept` accepts.
struct IdentityChoiceTests {
    private func choose(
        _ offered: [String], wanted: String? = nil, isTerminal: Bool = false, accepted: [String] = ["aaaa bbbb"]
    ) throws -> IdentityChoice {
        try IdentityChoice.make(
            "com.example.a/1", accepted: accepted, offered: offered, wanted: wanted, isTerminal: isTerminal)
    }

    private func fault(_ work: () throws -> IdentityChoice) -> CommandFault? {
        do {
            _ = try work()
            return nil
        } catch {
            return error as? CommandFault
        }
    }

    @Test(arguments: [false, true]) func `a fingerprint in an option is accepted without a prompt`(
        _ isTerminal: Bool
    ) throws {
        let choice = try choose(["1234 abcd", "5678 cdef"], wanted: "5678CDEF", isTerminal: isTerminal)
        #expect(choice == IdentityChoice(fingerprints: ["5678 cdef"], mustAsk: false))
    }

    @Test func `on a terminal the person is asked, and elsewhere the fingerprint is required`() throws {
        let choice = try choose(["1234 abcd"], isTerminal: true)
        #expect(choice == IdentityChoice(fingerprints: ["1234 abcd"], mustAsk: true))
        let missing = fault { try choose(["1234 abcd"]) }
        #expect(missing?.code == .validationFailure)
        #expect(missing?.message.contains("1234 abcd") == true, "it is shown")
    }

    @Test func `another fingerprint, no other identity and an unknown install are refused`() {
        let other = fault { try choose(["1234 abcd"], wanted: "1234 abce", isTerminal: true) }
        #expect(other?.code == ExitStatus.refused)
        #expect(other?.message.contains("1234 abcd") == true)
        let none = fault { try choose([], wanted: "aaaa bbbb", isTerminal: true) }
        #expect(none?.code == ExitStatus.refused)
        #expect(fault { try choose([], isTerminal: true, accepted: []) }?.code == ExitStatus.refused)
    }
}
