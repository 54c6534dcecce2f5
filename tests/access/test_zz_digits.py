import json, pytest
D="9"*5000
pytestmark=pytest.mark.django_db
def test_all(world, client_of, people):
    from tests.access.world import routes
    from django.urls import reverse
    from django.test import Client
    c=client_of("curator"); c.raise_request_exception=False
    seen=[]
    from tests.access.world import PUBLIC
    import re
    for name,route,_ in routes():
        args=world.arguments(route,PUBLIC)
        try: url=reverse(name,kwargs=args)
        except Exception: continue
        if "sign-out" in url or "switch" in url: continue
        c.force_login(people["curator"])
        got=c.get(url); body="" if got.streaming else got.content.decode("utf8","ignore")
        names=set(re.findall(r'name="([\w.-]+)"',body))|{"page","n","k","limit","seed","sample","run","run_id","judge","a","b","least","item","id","show","sort","cursor","edition","majority","benchmark","model","position"}
        q={n:D for n in names}
        for n in names:
            r=c.get(url,{n:D})
            if r.status_code>=500 and "readyz" not in url: seen.append(("GET",url,n,r.status_code))
        r=c.post(url,q)
        if r.status_code>=500 and "readyz" not in url: seen.append(("POST",url,"all",r.status_code))
        if url.startswith("/api/"):
            raw="{"+", ".join(f'"{n}": {D}' for n in sorted(names|{"settings","ranking","parts","spans"}))+"}"
            for method in (c.post,c.patch,c.put):
                r=method(url,raw,content_type="application/json")
                if r.status_code>=500: seen.append((method.__name__,url,"json",r.status_code))
            for n in ("settings","ranking","parts","budget","repeats","temperature","limit","score","seconds","sample","benchmark"):
                for v in (D, '"%s"'%D, "1"+"0"*400, '{"repeats": 1%s}'%("0"*400)):
                    r=c.post(url,'{"%s": %s}'%(n,v),content_type="application/json")
                    if r.status_code>=500: seen.append(("post",url,n,v[:12],r.status_code))
    print(*seen,sep="\n"); assert not seen
