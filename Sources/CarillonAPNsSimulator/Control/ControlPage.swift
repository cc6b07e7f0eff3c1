/// The page for people: the addresses, and the latest requests.
struct ControlPage {
    let simulator: APNsSimulator

    var html: String {
        let totals = simulator.totals
        let ports = simulator.ports.map { port in
            row([
                port.service.rawValue, port.environment.rawValue, "\(port.host):\(port.port)",
                port.isSecure ? "TLS" : "plain",
            ])
        }
        let requests = simulator.requests.suffix(50).reversed().map { request in
            row([
                String(request.number), String(request.connection), request.method, request.path,
                request.headers["apns-topic"] ?? "", String(request.status), request.reason?.rawValue ?? "",
                String(decoding: request.payload.prefix(300), as: UTF8.self),
            ])
        }
        let devices = simulator.devices.prefix(100).map { device in
            row([
                device.token, device.topic, device.environment.rawValue, "\(device.state)",
                device.isOnline ? "online" : "offline",
            ])
        }
        let connections = simulator.connections.suffix(20).reversed().map { connection in
            row([
                String(connection.number), connection.closedAt == nil ? "open" : "closed", String(connection.requests),
                String(connection.accepted), String(connection.mostStreams), String(connection.pings),
            ])
        }
        return """
            <!doctype html>
            <html lang="en"><head><meta charset="utf-8"><title>Carillon APNs Simulator</title>
            <meta http-equiv="refresh" content="5">
            <style>
            body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 75rem; padding: 0 1rem; }
            table { border-collapse: collapse; width: 100%; } th, td { text-align: left; padding: .2rem .6rem; vertical-align: top;
            border-bottom: 1px solid #8884; overflow-wrap: anywhere; } code { overflow-wrap: anywhere; }
            @media (prefers-color-scheme: dark) { body { background: #111; color: #ddd; } a { color: #8bf; } }
            </style></head><body>
            <h1>APNs Simulator</h1>
            <p>\(totals.requests) requests, \(totals.accepted) accepted, \(totals.faults) faults;
            \(simulator.faults.count) fault rules in force.
            Trust <a href="/authority.pem">the authority</a>; sign with <a href="/signing-key.p8">the key</a>
            <code>\(Self.escaped(simulator.signingKey.id))</code> of team <code>\(Self.escaped(simulator.signingKey.teamID))</code>.
            In JSON: <a href="/api/status">status</a>, <a href="/api/requests">requests</a>, <a href="/api/devices">devices</a>,
            <a href="/api/faults">faults</a>, <a href="/api/conditions">conditions</a>, <a href="/api/rules">rules</a>,
            <a href="/api/connections">connections</a>, <a href="/api/channels">channels</a>.</p>
            \(table("Ports", ["Service", "Environment", "Address", "Security"], ports))
            \(table("Requests", ["", "Connection", "Method", "Path", "Topic", "Status", "Reason", "Body"], requests))
            \(table("Devices", ["Token", "Topic", "Environment", "State", ""], devices))
            \(table("Connections", ["", "", "Requests", "Accepted", "Most streams", "Pings"], connections))
            </body></html>
            """
    }

    private func table(_ title: String, _ heads: [String], _ rows: [String]) -> String {
        guard !rows.isEmpty else { return "<h2>\(title)</h2><p>None.</p>" }
        let head = heads.map { "<th>\($0)</th>" }.joined()
        return "<h2>\(title)</h2><table><tr>\(head)</tr>\(rows.joined())</table>"
    }

    private func row(_ cells: [String]) -> String {
        "<tr>" + cells.map { "<td>\(Self.escaped($0))</td>" }.joined() + "</tr>"
    }

    static func escaped(_ text: String) -> String {
        var escaped = ""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "&": escaped += "&amp;"
            case "<": escaped += "&lt;"
            case ">": escaped += "&gt;"
            case "\"": escaped += "&quot;"
            case "'": escaped += "&#39;"
            default: escaped.unicodeScalars.append(scalar)
            }
        }
        return escaped
    }
}
