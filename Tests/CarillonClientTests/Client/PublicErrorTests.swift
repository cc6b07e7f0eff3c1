import Foundation
import Testing

@testable import CarillonClient

/// The texts of the products' errors.
struct PublicErrorTests {
    @Test func `an error of the library is described by its sentence`() {
        let sentence = "The file \"a.txt\" was not found."
        let definition = ServiceDefinitionFaults([.init(place: "/methods", text: "is missing")])
        let errors: [(any Error, String)] = [
            (PushError(.fileInvalid, sentence), sentence), (ServiceError(.attachmentMissing, sentence), sentence),
            (ServiceError(number: 7, sentence), sentence), (UpdateFailure(.refused, sentence), sentence),
            (ContentFault.permanent(sentence), sentence), (ContentFault.retryable(sentence), sentence),
            (definition, "/methods: is missing"),
        ]
        for (error, wanted) in errors {
            #expect(error.localizedDescription == wanted)
            #expect("\(error)".contains(wanted))
        }
        #expect(ServiceError(.providerBusy).localizedDescription.contains("provider_busy"))
        #expect(ServiceError(number: 7, "").localizedDescription.hasSuffix(" 7."))
    }

    /// Every type of the sources that is public and an error.
    @Test func `each public error type has a sentence and a description`() throws {
        let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().deletingLastPathComponent().appendingPathComponent("Sources")
        let paths = try #require(FileManager.default.enumerator(atPath: root.path)?.allObjects as? [String])
        var declarations: [String] = []
        for path in paths where path.hasSuffix(".swift") {
            let text = try String(contentsOf: root.appendingPathComponent(path), encoding: .utf8)
            declarations += text.split(separator: "\n").map { $0.trimmingCharacters(in: .whitespaces) }
                .filter { $0.hasPrefix("public ") || $0.hasPrefix("extension ") }
        }
        let text = declarations.joined(separator: "\n")
        let declaration = #/public (?:indirect )?(?:struct|enum|final class) (\w+): (?:[\w ,]*, )?Error\b([^{]*)/#
        let found = text.matches(of: declaration)
        #expect(found.count >= 9)
        for match in found {
            let name = String(match.output.1)
            let pattern = try Regex("extension (?:\\w+\\.)?\(name): [^{]*LocalizedError")
            #expect(text.contains(pattern), "\(name) has no sentence")
            let described = try Regex("extension (?:\\w+\\.)?\(name): [^{]*CustomStringConvertible")
            #expect(match.output.2.contains("CustomStringConvertible") || text.contains(described), "\(name)")
        }
    }
}
