import ArgumentParser
import CarillonBasics
import Foundation
import NIOCore
import NIOHTTP1

struct HealthCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "health", abstract: "Check whether a server accepts work.",
        discussion: """
            Exits with 0 if it does, and with 1 and a sentence if it does not. For health checks of containers whose image has no curl.
            """)

    @Option(
        help: """
            The address of the server or of its metrics, or unix:/path; or CARILLON_SERVER in the environment. \
            (default: http://127.0.0.1:8080)
            """)
    var server: String?

    @OptionGroup var authority: AuthorityOption
    @Flag(help: "Check only whether the process runs.") var live = false

    func run() async throws {
        try await reportingFaults(interrupted: "interrupted") {
            let address = try ServerChoice.urlOrSocket(server, standard: "http://127.0.0.1:8080")
            let client = APIClient(server: address, key: nil, authority: authority.file)
            do {
                let path = live ? "/health/live" : "/health/ready"
                let status = JSONValue.string(live ? "live" : "ready")
                _ = try client.accepted(
                    try await client.send(.GET, path, timeout: .seconds(10)),
                    as: { JSONValue(parsing: Array($0.body))?["status"] == status })
            } catch let fault as CommandFault {
                throw CommandFault(.failure, fault.message)
            }
            Printer.printLine(live ? "live" : "ready")
        }
    }
}
