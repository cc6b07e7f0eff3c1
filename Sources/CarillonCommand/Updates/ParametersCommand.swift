import ArgumentParser
import CarillonBasics
import CarillonCore
import CarillonServer
import CarillonWire
import Foundation
import NIOHTTP1

/// `carillon apps parameters`: the parameters that an app's devices report and its audiences use.
struct ParametersCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "parameters",
        abstract: "Declare the parameters that an app's devices report, for the audiences of updates.",
        discussion: """
            The types are string, int, double, bool, timestamp, strings (a list) and location. The server itself sets user, \
            device and app. A live update whose audience uses a parameter that is no longer declared matches no device, \
            until the parameter is declared again.
            """,
        subcommands: [Set.self, Show.self])

    struct Set: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Declare the parameters, and replace the earlier declaration: region=string level=int.")
        @Argument(help: "The app.") var app: String
        @Argument(help: "Names with their types.") var parameters: [String] = []
        @OptionGroup var options: OperatorOptions

        func validate() throws {
            for parameter in parameters where parameter.split(separator: "=").count != 2 {
                throw ValidationError("\"\(parameter)\" must be name=type, such as region=string.")
            }
        }

        func run() async throws {
            let document = document
            try await options.perform { domain in
                try await domain.updates.setRules(
                    try ParameterRules(document), of: try await domain.serial(ofApp: app))
            } onServer: { client in
                _ = try await client.call(
                    .PUT, "/v1/apps/\(app)/parameters", document, as: JSONValue.self, with: ["parameters"])
            }
            options.printer.print(["event": "set", "app": .text(app)], otherwise: "set the parameters of \(app)")
        }

        private var document: JSONValue {
            let members = parameters.map { parameter in
                let parts = parameter.split(separator: "=")
                return JSONValue.Member(name: String(parts[0]), value: .string(String(parts[1])))
            }
            return ["parameters": .object(members)]
        }
    }

    struct Show: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Show the parameters, as JSON.")
        @Argument(help: "The app.") var app: String
        @OptionGroup var options: OperatorOptions

        func run() async throws {
            try await options.perform { domain in
                let serial = try await domain.serial(ofApp: app)
                Printer.printJSON(try await domain.updates.rules(of: serial).json.bytes)
            } onServer: { client in
                let parameters = try await client.call(
                    .GET, "/v1/apps/\(app)/parameters", as: JSONValue.self, with: ["parameters"])
                Printer.printJSON(parameters.bytes)
            }
        }
    }
}
