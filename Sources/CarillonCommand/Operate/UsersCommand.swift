import ArgumentParser
import CarillonBasics
import CarillonServer
import CarillonWire
import NIOHTTP1

/// `carillon apps users`: the rules by which an app's users are identified.
struct UsersCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "users", abstract: "Set, show and remove the rules by which the server verifies the users of an app.",
        discussion: """
            A device belongs to a user when it registers with a token (a JWT) that the app's backend signed. Without these \
            rules the server accepts no user tokens.
            """,
        subcommands: [Set.self, Show.self, Remove.self])

    struct Set: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract:
                "Set the keys that sign user tokens and the claims that the tokens must have, and replace earlier rules.")
        @Argument(help: "The app.") var app: String
        @Option(
            help: ArgumentHelp(
                "The https URL of the key set (JWKS), which the server fetches when needed, at most every five minutes.",
                valueName: "url"))
        var jwksUrl: String?
        @Option(help: ArgumentHelp("A file with the key set, in place of --jwks-url.", valueName: "file"))
        var jwksFile: String?
        @Option(
            help: ArgumentHelp(
                "A file with secrets for HS256, one per line, which the app's backend also has; in place of --jwks-url.",
                valueName: "file"))
        var secretsFile: String?
        @Option(help: "An accepted algorithm: ES256, RS256 or EdDSA; can be repeated. Default: all of them.")
        var algorithm: [String] = []
        @Option(help: "The audience (aud) that a token must have. Default: the app's name.") var audience: String?
        @Option(help: "The issuer (iss) that a token must have. Default: any.") var issuer: String?
        @OptionGroup var options: OperatorOptions

        func validate() throws {
            guard [jwksUrl, jwksFile, secretsFile].compactMap(\.self).count == 1 else {
                throw ValidationError("Use one of --jwks-url URL, --jwks-file FILE and --secrets-file FILE.")
            }
        }

        private func body() throws -> JSONValue {
            var members: [(String, JSONValue?)] = [
                ("jwksURL", jwksUrl.map { .string($0) }), ("audience", audience.map { .string($0) }),
                ("issuer", issuer.map { .string($0) }),
                ("algorithms", algorithm.isEmpty ? nil : .array(algorithm.map { .string($0) })),
            ]
            if let jwksFile {
                let text = Array(try InputFile.bytes(jwksFile))
                guard let keys = JSONValue(parsing: text) else {
                    if let fault = CommandFault.numberOutOfRange(in: text, of: jwksFile) { throw fault }
                    throw ValidationError("\(jwksFile) must be a JSON file.")
                }
                members.append(("jwks", keys))
            }
            if let secretsFile {
                let lines = try InputFile.secretText(secretsFile).split(whereSeparator: \.isNewline)
                members.append(("secrets", .array(lines.map { .string(String($0)) })))
            }
            return .object(members.compactMap { name, value in value.map { .init(name: name, value: $0) } })
        }

        func run() async throws {
            try await options.perform { domain in
                let (rules, setAt) = try await domain.users.set(try body(), of: try AppID.checked(app))
                options.show(UserRulesBody(rules, setAt: setAt), of: app, event: "set")
            } onServer: { client in
                let rules = try await client.call(.PUT, "/v1/apps/\(app)/users", try body(), as: UserRulesBody.self)
                options.show(rules, of: app, event: "set")
            }
        }
    }

    struct Show: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Show the rules, without their secrets.")
        @Argument(help: "The app.") var app: String
        @OptionGroup var options: OperatorOptions

        func run() async throws {
            try await options.perform { domain in
                let (rules, setAt) = try await domain.users.rules(of: try AppID.checked(app))
                options.show(UserRulesBody(rules, setAt: setAt), of: app, event: nil)
            } onServer: { client in
                let rules = try await client.call(.GET, "/v1/apps/\(app)/users", as: UserRulesBody.self)
                options.show(rules, of: app, event: nil)
            }
        }
    }

    struct Remove: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Remove the rules. Devices keep their users.")
        @Argument(help: "The app.") var app: String
        @OptionGroup var options: OperatorOptions

        func run() async throws {
            try await options.perform { domain in
                try await domain.users.remove(of: try AppID.checked(app))
            } onServer: { client in
                _ = try client.accepted(try await client.send(.DELETE, "/v1/apps/\(app)/users"))
            }
            options.printer.print(["event": "removed", "app": .text(app)], otherwise: "removed the user rules of \(app)")
        }
    }
}

extension OperatorOptions {
    fileprivate func show(_ rules: UserRulesBody, of app: String, event: String?) {
        let algorithms = rules.algorithms.joined(separator: " ")
        printer.print(
            [
                "event": event.map(OutputValue.text), "app": .text(app), "algorithms": .text(algorithms),
                "audience": .text(rules.audience), "setAt": .text(rules.setAt),
                "jwksURL": rules.jwksURL.map(OutputValue.text), "keys": rules.keys.map { .number(Int64($0)) },
                "secrets": rules.secrets.map { .number(Int64($0)) }, "issuer": rules.issuer.map(OutputValue.text),
            ],
            words: [
                event, app, rules.jwksURL, rules.keys.map { "\($0) keys" }, rules.secrets.map { "\($0) secrets" },
                algorithms, "for \(rules.audience)", rules.issuer.map { "from \($0)" }, "since \(rules.setAt)",
            ])
    }
}
