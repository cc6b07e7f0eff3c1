import APNsFigures
import ArgumentParser
import Foundation

/// Sends with CarillonAPNs and does nothing else, so that the process's CPU and memory are the library's and its caller's.
/// `carillon-bench` starts it.
@main
struct APNsLoad: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "apns-load",
        abstract: "Send pushes to a simulator, and print one line of figures as JSON.",
        subcommands: [PushCommand.self, StallCommand.self, CrowdCommand.self])

    static func say(_ figures: some Encodable) throws {
        print(String(decoding: try JSONEncoder().encode(figures), as: UTF8.self))
    }
}
