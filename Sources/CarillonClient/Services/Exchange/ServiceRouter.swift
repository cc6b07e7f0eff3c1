import CarillonBasics
import CarillonWire
import Crypto

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The app's offer to other apps.
struct ServiceOffering: Hashable, Sendable {
    struct Service: Hashable, Sendable {
        var id: String
        var version: String
    }

    var name: String
    var version: String
    var icon: Data?
    var services: [Service]

    func json(keys: KeyBundle) -> JSONValue {
        var members: [JSONValue.Member] = [
            .init(name: "name", value: .string(name)), .init(name: "version", value: .string(version)),
            .init(
                name: "services",
                value: .array(
                    services.map {
                        .object([
                            .init(name: "id", value: .string($0.id)), .init(name: "version", value: .string($0.version)),
                        ])
                    })), .init(name: "keys", value: keys.json),
        ]
        if let icon { members.append(.init(name: "icon", value: .string(Base64URL.encode(Array(icon))))) }
        return .object(members)
    }

    /// The offer that is sent to the server, and its revision.
    ///
    /// - Parameter isNamed: Whether the server stores revisions.
    func body(keys: KeyBundle, isNamed: Bool) -> (bytes: [UInt8], revision: String?) {
        let json = json(keys: keys)
        guard isNamed, case .object(var members) = json else { return (json.bytes, nil) }
        let revision = Base64URL.encode(Array(SHA256.hash(data: json.bytes).prefix(12)))
        members.append(.init(name: "revision", value: .string(revision)))
        return (JSONValue.object(members).bytes, revision)
    }
}

/// The handlers of methods, and the disabled services, versions and methods. A request for an offered method without a handler
/// waits for the handler.
actor ServiceRouter {
    typealias Handler = @Sendable (ServiceRequest) async throws -> ServiceReply

    struct Route: Sendable {
        var handler: Handler
        /// Whether the handler is called only once for a request, in any case.
        var atMostOnce: Bool
    }

    private var offered: Set<ServiceMethod> = []
    /// The definitions by service and version.
    private var definitions: [[String]: ServiceDefinition] = [:]
    private var routes: [ServiceMethod: Route] = [:]
    private var disabledServices: Set<String> = []
    private var disabledVersions: Set<[String]> = []
    private var disabledMethods: Set<ServiceMethod> = []
    private var waiting: [ServiceMethod: [PendingResult<Route>]] = [:]

    /// Sets the methods that have a handler, or will have one.
    func offer(_ methods: Set<ServiceMethod>) { offered = methods }

    /// Sets the definition against which requests and replies are checked from now on.
    func define(_ definition: ServiceDefinition) { definitions[[definition.service, definition.version]] = definition }

    func definition(of method: ServiceMethod) -> ServiceDefinition? { definitions[[method.service, method.version]] }

    func handle(_ method: ServiceMethod, _ route: Route?) {
        routes[method] = route
        guard let route else { return }
        offered.insert(method)
        for result in waiting.removeValue(forKey: method) ?? [] { result.resume(.success(route)) }
    }

    func setService(_ service: String, isDisabled: Bool) {
        if isDisabled { disabledServices.insert(service) } else { disabledServices.remove(service) }
    }

    func setVersion(_ version: String, of service: String, isDisabled: Bool) {
        if isDisabled { disabledVersions.insert([service, version]) } else { disabledVersions.remove([service, version]) }
    }

    func setMethod(_ method: ServiceMethod, isDisabled: Bool) {
        if isDisabled { disabledMethods.insert(method) } else { disabledMethods.remove(method) }
    }

    /// Returns the handler of a method, and waits for it if the method is offered.
    ///
    /// - Throws: ``ServiceError`` if the method is not offered, or is disabled.
    func route(_ method: ServiceMethod) async throws -> Route {
        let known = offered.union(routes.keys)
        guard known.contains(where: { $0.service == method.service }) else {
            throw ServiceError(.serviceNotFound, "This app does not have \(method.service).")
        }
        guard !disabledServices.contains(method.service) else {
            throw ServiceError(.serviceDisabled, "\(method.service) is switched off.")
        }
        guard known.contains(where: { $0.service == method.service && $0.version == method.version }) else {
            throw ServiceError(.serviceVersionNotFound, "This app does not have \(method.service) \(method.version).")
        }
        guard !disabledVersions.contains([method.service, method.version]) else {
            throw ServiceError(.versionDisabled, "\(method.service) \(method.version) is switched off.")
        }
        guard known.contains(method) else {
            throw ServiceError(.serviceMethodNotFound, "\(method.service) \(method.version) has no \(method.name).")
        }
        guard !disabledMethods.contains(method) else {
            throw ServiceError(.methodDisabled, "\(method.name) of \(method.service) is switched off.")
        }
        if let route = routes[method] { return route }
        let result = PendingResult<Route>()
        waiting[method, default: []].append(result)
        return try await result.value
    }
}
