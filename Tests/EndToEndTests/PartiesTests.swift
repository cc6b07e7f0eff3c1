import Foundation
import Testing

/// Parties that nobody here wrote, from PyPI, against the real executable. `make test` installs them and says where.
@Suite(
    .serialized, .timeLimit(.minutes(15)), .enabled(if: Parties.python != nil, "run `make test`, which installs the parties")
)
struct PartiesTests {
    @Test(arguments: Parties.files)
    func `independent clients and senders find what the standards promise`(file: String) async throws {
        let (status, lines) = try await Parties.run(["-m", "pytest", "-q", "-p", "no:cacheprovider", file])
        #expect(status == 0, "\(lines.suffix(80).joined(separator: "\n"))")
    }

    @Test func `nothing accepted is lost, and nothing final comes back, over 25 kills`() async throws {
        let (status, lines) = try await Parties.run(["durability.py", "--kills", "25"])
        #expect(status == 0, "\(lines.suffix(40).joined(separator: "\n"))")
    }
}

/// The Python that has the parties.
enum Parties {
    static let python = ProcessInfo.processInfo.environment["CARILLON_PARTIES"]

    private static let directory = Program.packageDirectory + "/Tests/EndToEndTests/Parties"

    static var files: [String] {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: directory)) ?? []
        return names.filter { $0.hasPrefix("test_") && $0.hasSuffix(".py") }.sorted()
    }

    static func run(_ arguments: [String]) async throws -> (status: Int32, lines: [String]) {
        let paths = arguments.map { $0.hasSuffix(".py") ? "\(directory)/\($0)" : $0 }
        let program = try Program(
            python ?? "python3", paths,
            environment: ["CARILLON_EXECUTABLE": Program.carillon, "PYTHONDONTWRITEBYTECODE": "1"])
        return (await program.exitStatus(), program.output)
    }
}
